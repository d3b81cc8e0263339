"""The input of local tasks: how much waits for each, what credit its senders get, and whether spouts must pause."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ardea.protocol.wire_pb2 import CREDITS, Credit, Demand, Header
from ardea.stream_manager.consumers import Consumer
from ardea.stream_manager.members import Members
from ardea.stream_manager.pauses import BackPressure


class Inputs:
    """Those of all tasks of one container."""

    def __init__(self, members: Members) -> None:
        self.consumers: dict[int, Consumer] = {}
        self._members = members
        self.untold: defaultdict[int, dict[int, None]] = defaultdict(dict)  # container -> tasks of which it must hear
        self._held: dict[int, set[int]] = {}  # container -> tasks for which its manager holds something
        self._pressure = BackPressure(members.container, members.peers, members.instances, members.outboxes)

    # --- tasks ------------------------------------------------------------------------------------------------

    def planned(self, task: int, high_bytes: int, low_bytes: int) -> None:
        """A local task, and how much may wait for it before spouts pause, and when they go on."""
        consumer = self.consumers.setdefault(task, Consumer(task))
        consumer.high_bytes, consumer.low_bytes = high_bytes, low_bytes

    def restart(self, task: int, life: int) -> None:
        """A task has that incarnation now; of those of other containers nothing is kept."""
        if task in self.consumers:
            self.consumers[task].restart(life)

    def forget_pause(self, task: int) -> None:
        """The task has a new incarnation, or is gone: nothing waits in it."""
        self._pressure.forget(task)

    def left(self, task: int) -> None:
        """A task is not where it was."""
        self._pressure.forget(task)
        self.consumers.pop(task, None)

    def sender_met(self, container: int, life: int) -> None:
        """A manager has a new life: of what its former one sent or held nothing waits."""
        for consumer in self.consumers.values():
            if container in consumer.traffic.senders:
                consumer.traffic.held(container, life, 0, 0)

    def container_left(self, container: int) -> None:
        """The plan has the container no longer: nothing waits there."""
        self.untold.pop(container, None)
        self._holds_nothing(container)

    # --- credit -----------------------------------------------------------------------------------------------

    def consumed(self, credit: Credit, now: float) -> Credit | None:
        """A local task says what it has consumed of one manager's; that manager gets its credit with the round.

        Returns:
            This manager's own, if it is the one.
        """
        consumer = self.consumers[credit.task]
        if consumer.measured(credit):
            self._review(consumer, now)
        if not consumer.traffic.consumed(credit.container, credit.container_life, credit.rows, credit.bytes):
            return None
        self._pressure.judge(self._members.plan, consumer, now)
        if credit.container == self._members.container:
            return consumer.grant(credit.container, now)
        self.untold[credit.container][credit.task] = None
        return None

    def _review(self, consumer: Consumer, now: float) -> None:
        """The senders' shares may have changed."""
        for container in consumer.untold(now):
            self.untold[container][consumer.task] = None

    def tell(self, now: float) -> list[Credit]:
        """Each sender hears of its credit for all tasks of which it must; returns this manager's own."""
        members, own = self._members, []
        untold, self.untold = self.untold, defaultdict(dict)
        for container, tasks in untold.items():
            consumers = (self.consumers[task] for task in tasks if task in self.consumers)
            grants = [grant for c in consumers if (grant := c.grant(container, now)) is not None]
            if container == members.container:
                own = grants
            elif container in members.peers and grants:
                outbox = members.outboxes[members.peers[container]]
                if outbox.free:
                    outbox.newest("credits", Header(kind=CREDITS, credits=grants))
                    continue
                for grant in grants:
                    outbox.newest(("credit", grant.task), Header(kind=CREDITS, credits=[grant]))
        return own

    # --- back pressure ----------------------------------------------------------------------------------------

    def demanded(self, container: int, life: int, demands: Iterable[Demand], now: float, *, all_held: bool) -> None:
        """How much a manager holds for tasks of this container; ``all_held``: and for others nothing."""
        demands = [demand for demand in demands if demand.task in self.consumers]
        named, before = {demand.task for demand in demands}, self._held.get(container, set())
        over = [Demand(task=task) for task in before - named if task in self.consumers] if all_held else []
        for demand in (*demands, *over):
            consumer = self.consumers[demand.task]
            consumer.traffic.held(container, life, demand.held_rows, demand.held_bytes)
            self._pressure.judge(self._members.plan, consumer, now)
        if named or before:
            self._held[container] = named if all_held else named | before

    def _holds_nothing(self, container: int) -> None:
        """What its manager said last that it holds does not count any more."""
        for task in self._held.pop(container, ()):
            if task in self.consumers:
                self.consumers[task].traffic.held(container, 0, 0, 0)

    def paused(self, task: int, container: int, now: float, *, paused: bool) -> None:
        """A manager's word about a task of its container."""
        self._pressure.note_pause(self._members.plan, task, container, now, paused=paused)

    def beat(self, held: Iterable[Demand], now: float) -> None:
        """Repeats what is still true; ``held``: what this manager holds for tasks here."""
        members = self._members
        for container, link in members.peers.items():
            if link.lost:
                self._pressure.silent(members.plan, container, now)
                self._holds_nothing(container)  # nothing comes from there; heard again, it says each second what waits
        self.demanded(members.container, members.me, held, now, all_held=True)
        for consumer in self.consumers.values():
            self._review(consumer, now)
            pausing = consumer.pausing
            if consumer.judge(now) or pausing:
                self._pressure.announce(members.plan, consumer, now)
        self._pressure.apply(members.plan, now)
