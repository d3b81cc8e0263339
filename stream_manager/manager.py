"""The stream manager: forwards batches by their header, judges trees, keeps everybody's flow.

Pure: messages come in through :meth:`StreamManager.received`, time through :meth:`StreamManager.tick`, and leave
through the links' port.  It never looks into values.  docs/protocol.md has the table of messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ardea.config import Settings
from ardea.protocol.checked import DATA
from ardea.protocol.ids import column
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import (
    ACKS,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    PAUSE,
    REFUSED,
    REPORT,
    SNAPSHOTS,
    TASKS,
    Credit,
    Header,
    Hello,
    Order,
    Refusal,
    TaskReport,
    Tasks,
)
from ardea.stream_manager.ack_routes import AckRoutes
from ardea.stream_manager.epochs import leavers
from ardea.stream_manager.hellos import Hellos, pass_on
from ardea.stream_manager.incarnations import Incarnations
from ardea.stream_manager.inputs import Inputs
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.loads import Loads
from ardea.stream_manager.members import Members
from ardea.stream_manager.output_credit import Outputs
from ardea.stream_manager.rows import Rows
from ardea.stream_manager.senders import may_come_from_instance, may_come_from_manager
from ardea.stream_manager.settings import FlowSettings, ManagerStatistics
from ardea.stream_manager.timelines import Timelines
from ardea.stream_manager.verdicts import Verdicts

HEARTBEAT_EVERY = 1.0
LINGER = 5.0
"""Seconds for which the order to exit may wait for instances that are just being started again."""
STORED = 2**64 - 1
"""The term of an order that follows from the stored state: no master's is higher."""


class StreamManager:
    """One container's stream manager; :meth:`planned` comes before anything else."""

    def __init__(
        self, container: int, me: int, topology: str, port: Port, on_report: Callable[[TaskReport], None]
    ) -> None:
        """``me`` is the incarnation; ``on_report`` carries a task's report towards the master."""
        self.statistics = ManagerStatistics()
        self.hellos = Hellos(topology, container)
        self.members = members = Members(container, me, port)
        self.verdicts = Verdicts()
        self.timelines = Timelines(members)
        self.inputs = Inputs(members)
        self.outputs = Outputs(members)
        self._routes = AckRoutes(members, self.verdicts, self.statistics)
        self.rows = Rows(members, self.verdicts, self._routes, self.inputs, self.outputs, self.statistics)
        self._incarnations = Incarnations(
            members, self.hellos, self.rows, self.inputs, self.outputs, self.verdicts, self._routes
        )
        self._loads = Loads(container)
        self._on_report = on_report
        self._now = 0.0
        self._next_heartbeat = 0.0

    # --- the plan ---------------------------------------------------------------------------------------------

    def planned(self, known: KnownPlan) -> None:
        """A plan from the master: routing content and addresses.  One of an earlier epoch says nothing."""
        members, message = self.members, known.message
        if self.hellos.plan is not None and message.epoch < self.hellos.epoch:
            return
        adopts = self.hellos.plan is None or message.epoch > self.hellos.epoch
        if adopts:
            self._adopt(known)
        else:
            self.hellos.plan = message
        new = members.addressed(message.addresses)
        for task, life in members.all_named().items():
            self._incarnations.risen(task, life, self._now)
        for link in members.instances.values() if adopts else ():
            self._incarnations.welcome(link)
        for number in new & members.peers.keys():
            self._incarnations.hello(members.peers[number])
        self.rows.go_on(self._now)

    def _adopt(self, known: KnownPlan) -> None:
        """A plan of a higher epoch: forgets what has left, makes room for what is new."""
        members, plan, message = self.members, known.plan, known.message
        former, rebuilt = None if self.hellos.plan is None else members.plan, message.build != self.hellos.build
        for task in () if former is None else leavers(former, plan):
            self._left(task)
        members.planned(plan)
        self.hellos.adopt(message, known.shape)
        self.verdicts.planned(plan.logical)
        self._loads.planned(plan)
        for number in members.peers.keys() - set(plan.containers):
            self._routes.undelivered(members.without_peer(number), self._now)
            self.inputs.container_left(number)
        self.rows.planned(former, rebuilt=rebuilt, now=self._now)
        settings, chosen = FlowSettings.of(plan.logical.config), Settings.of(plan.logical.config)
        for task_plan in plan.tasks_in(members.container):
            self.verdicts.local(plan, task_plan, members.instance(task_plan))
            self.outputs.planned(task_plan.task, settings.queue_bytes, chosen.horizon)
            self.inputs.planned(task_plan.task, settings.high_bytes, settings.low_bytes)

    def _left(self, task: int) -> None:
        """A task is not where it was: nothing more goes there, and what was on its way is lost."""
        members = self.members
        if members.forget(task):
            self.verdicts.lose_through(members.plan.tasks[task].component)
        self.rows.left(task, self._now)
        if task in members.instances:
            self._routes.undelivered(members.without_instance(task), self._now)
        self.outputs.left(task)
        self.inputs.left(task)
        self.verdicts.left(task)

    # --- messages ---------------------------------------------------------------------------------------------

    def received(self, link: Link, lane: Lane, header: Header, frames: Sequence[bytes], now: float) -> None:
        """One message from an instance or a peer manager."""
        if not self._may_come(link, header, frames):
            self.statistics.malformed += 1
            return
        self._now = now
        link.last_heard = now
        kind = header.kind
        if kind == HELLO:
            self._incarnations.met(link, header, Hello.FromString(frames[0]), now)
            self.timelines.pass_on()
            return
        if kind == REFUSED:
            self._incarnations.refused(link, header, Refusal.FromString(frames[0]))
            return
        size = sum(map(len, frames))
        if not link.accept(lane, header, size):
            if kind == HEARTBEAT and header.receiver != self.members.me:
                self._incarnations.hello(link)  # it does not know yet that this manager has a new life
            return
        if kind in DATA:
            if kind == INIT:
                self.outputs.passed(link.key, 0, size, now)
                self.verdicts.init(link.key, column(frames[0]), column(frames[1]), now)
            else:
                self.rows.arrived(link, header, frames, size, now)
            return
        for credit in header.credits:
            self._credited(credit, link)
        if kind == ACKS:
            self._routes.acks(header.target, frames, now)
        elif kind == REPORT:
            self._report(link, frames[0])
        elif kind == PAUSE:
            self.inputs.paused(header.target, link.key, now, paused=header.paused)
        elif kind == TASKS:
            self._incarnations.named(link, Tasks.FromString(frames[0]).lives, now)
            self.timelines.pass_on()
        elif kind == HEARTBEAT:
            self.inputs.demanded(link.key, link.peer, header.demands, now, all_held=header.all_held)

    def _may_come(self, link: Link, header: Header, frames: Sequence[bytes]) -> bool:
        """Whether that peer may send the message, which is sound by itself: each speaks for itself only."""
        task, kind = link.key, header.kind
        if self.members.instances.get(task) is not link:
            return may_come_from_manager(task, header, frames)
        return may_come_from_instance(task, header, frames) and (
            self.verdicts.judges(task) or not (kind == INIT or header.opens)
        )

    def _credited(self, credit: Credit, link: Link) -> None:
        """By a local task, for what any manager sent it; or by a peer, for what this one sends its tasks."""
        members, task = self.members, credit.task
        if members.instances.get(task) is link:
            if (grant := self.inputs.consumed(credit, self._now)) is not None:
                self.rows.credited(grant, self._now)
            return
        if task not in members.plan.tasks or members.peers.get(members.plan.tasks[task].container) is not link:
            return  # of a task that an update has removed, or moved
        if credit.container != members.container or credit.container_life != members.me:
            return
        self._incarnations.risen(task, credit.task_life, self._now)
        if credit.task_life == members.lives.get(task):
            self.rows.credited(credit, self._now)

    # --- master -----------------------------------------------------------------------------------------------

    def ordered(self, order: Order) -> None:
        """An order of the master for all local tasks; kept for those that come later."""
        if not self.hellos.ordered(order):
            return
        if order.kind == SNAPSHOTS:
            self.timelines.ordered(order)
            return
        for link in self.members.instances.values():
            pass_on(self.members.outboxes[link], order)

    @property
    def everybody_knows(self) -> bool:
        """Whether every local task has confirmed the last order."""
        instances = self.members.instances.values()
        return all(link.up and not link.lanes[Lane.CONTROL].unconfirmed_bytes for link in instances)

    def _report(self, link: Link, body: bytes) -> None:
        report = TaskReport.FromString(body)
        report.life = self.members.lives.get(link.key, 0)
        self._on_report(report)

    # --- time -------------------------------------------------------------------------------------------------

    def flush(self, now: float) -> None:
        """At the end of each round of messages: credits, verdicts, and whatever waited for room."""
        self._now = now
        if self.inputs.untold:
            for credit in self.inputs.tell(now):
                self.rows.credited(credit, now)
        self.verdicts.send()
        self.outputs.flush()
        self.members.flush(now)

    def tick(self, now: float, *, second: bool = False) -> float:
        """Timeouts and, once a second, heartbeats; returns when to be called again.

        ``second``: see :meth:`Shell.tick`.
        """
        self._now = now
        self.verdicts.expire(now)
        if not self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY  # with the plan, all have been said hello
        if second or now >= self._next_heartbeat:
            self._next_heartbeat = now + HEARTBEAT_EVERY
            self._beat()
        self.flush(now)
        return min(self._next_heartbeat, self.verdicts.next_deadline, self.members.next_telling)

    def _beat(self) -> None:
        """Says again whatever is still true, so that words that were lost heal."""
        members, rows = self.members, self.rows
        held = rows.beat()
        self.inputs.beat(held.get(members.container, ()), self._now)
        self.outputs.beat()
        self.timelines.pass_on()
        for task, loads in self._loads.of(rows.channels):
            members.outboxes[members.instances[task]].newest("loads", Header(kind=CREDITS, loads=loads))
        for number, link in members.peers.items():
            if not link.up:
                self._incarnations.hello(link)
            elif link.needs_heartbeat() or number in held:
                link.heartbeat(Header(kind=HEARTBEAT, demands=held.get(number, ()), all_held=True))
        for link in members.instances.values():
            if not link.up:
                self.hellos.to_instance(link)
            elif link.needs_heartbeat():
                link.heartbeat()
