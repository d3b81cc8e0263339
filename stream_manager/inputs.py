"""The input of local tasks: how much waits for each, what credit its senders get, and whether spouts must pause."""

from __future__ import annotations

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

    # --- credit -----------------------------------------------------------------------------------------------

    def consumed(self, credit: Credit, now: float) -> Credit | None:
        """A local task says what it has consumed of one manager's; that manager gets its credit.

        Returns:
            This manager's own, if it is the one.
        """
        members = self._members
        consumer = self.consumers[credit.task]
        consumer.measured(credit)
        if not consumer.traffic.consumed(credit.container, credit.container_life, credit.rows, credit.bytes):
            return None
        self._pressure.judge(members.plan, consumer, now)
        grant = consumer.grant(credit.container, now)
        assert grant is not None
        if credit.container == members.container:
            return grant
        peer = members.peers.get(credit.container)
        if peer is not None:
            members.outboxes[peer].newest(("credit", credit.task), Header(kind=CREDITS, credits=[grant]))
        return None

    def grants(self, container: int, now: float) -> list[Credit]:
        """All that the manager of ``container`` may send."""
        return [grant for c in self.consumers.values() if (grant := c.grant(container, now)) is not None]

    # --- back pressure ----------------------------------------------------------------------------------------

    def demanded(self, container: int, life: int, demands: Iterable[Demand], now: float) -> None:
        """How much a manager holds for tasks of this container."""
        for demand in demands:
            consumer = self.consumers.get(demand.task)
            if consumer is not None:
                consumer.traffic.held(container, life, demand.held_rows, demand.held_bytes)
                self._pressure.judge(self._members.plan, consumer, now)

    def paused(self, task: int, container: int, now: float, *, paused: bool) -> None:
        """A manager's word about a task of its container."""
        self._pressure.note_pause(self._members.plan, task, container, now, paused=paused)

    def beat(self, held: Iterable[Demand], now: float) -> None:
        """Repeats what is still true; ``held``: what this manager holds for each task here."""
        members = self._members
        for container, link in members.peers.items():
            if link.lost:
                self._pressure.silent(members.plan, container, now)
        for demand in held:
            self.demanded(members.container, members.me, [demand], now)
            consumer = self.consumers[demand.task]
            if consumer.pausing:
                self._pressure.announce(members.plan, consumer, now)
        self._pressure.apply(members.plan, now)
