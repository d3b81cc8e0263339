"""Whom a stream manager has to do with by its plan: links, channels, ledgers; what a new plan brings and takes away."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.config import Settings
from ardea.plan.packing import PackingPlan
from ardea.plan.physical import PhysicalPlan
from ardea.plan.shape import shape_from_bytes
from ardea.protocol.flow import Channel, Window
from ardea.protocol.ids import U64, by_task, column, distinct
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link, Port
from ardea.protocol.wire_pb2 import ROWS, Address, Header, Plan
from ardea.stream_manager.acks import ControlOutbox
from ardea.stream_manager.adoption import Epochs, leavers
from ardea.stream_manager.consumers import Consumer
from ardea.stream_manager.greeting import Greeting
from ardea.stream_manager.loads import Loads
from ardea.stream_manager.numbers import FlowSettings, ManagerStatistics
from ardea.stream_manager.pauses import BackPressure
from ardea.stream_manager.sources import Source
from ardea.stream_manager.verdicts import FAILED, LOST, Verdicts

Batch = tuple[Header, Sequence[bytes]]


class Members:
    """The tables of one manager; :meth:`adopt` comes before anything else."""

    plan: PhysicalPlan

    def __init__(self, container: int, me: int, topology: str, port: Port) -> None:
        """``me`` is the incarnation."""
        self.container = container
        self.me = me
        self.settings = FlowSettings()
        self.statistics = ManagerStatistics()
        self.addresses: dict[int, Address] = {}
        self.lives: dict[int, int] = {}
        self.instances: dict[int, Link] = {}
        self.peers: dict[int, Link] = {}
        self.outboxes: dict[Link, ControlOutbox] = {}
        self.channels: dict[int, Channel[Batch]] = {}
        self.sources: dict[int, Source] = {}
        self.consumers: dict[int, Consumer] = {}
        self.verdicts = Verdicts()
        self.greeting = Greeting(topology, container)
        self.epochs = Epochs()
        self._port = port
        self._now = 0.0
        self._pressure = BackPressure(container, self.peers, self.instances, self.outboxes)
        self._loads = Loads(container)
        self._returning: set[int] = set()
        self._credit_due: set[int] = set()

    # --- the plan ---------------------------------------------------------------------------------------------

    def adopt(self, message: Plan, packing: PackingPlan) -> None:
        """A plan of a higher epoch: forgets what has left, makes room for what is new."""
        former = None if self.greeting.plan is None else self.plan
        shape = shape_from_bytes(message.shape)
        plan = PhysicalPlan.build(shape.plan(), packing, message.epoch)
        for task in () if former is None else leavers(former, plan):
            self._left(task)
        self.epochs.adopted(former, plan, rebuilt=message.build != self.greeting.build)
        self.plan = plan
        self.greeting.adopt(message, shape)
        self.verdicts.planned(plan.logical)
        self.settings = settings = FlowSettings.of(plan.logical.config)
        self._loads.planned(plan)
        for number in self.peers.keys() - set(plan.containers):
            self._forget(self.peers.pop(number))
            self.epochs.told.pop(number, None)
            self.addresses.pop(number, None)
        for channel in self.channels.values():
            for header, frames in channel.sift(lambda held: not self.epochs.stale(held[0], plan)):
                self._abandon(header, frames)
        horizon = self._timeout / 6
        for task_plan in plan.tasks.values():
            task = task_plan.task
            channel = self.channels.setdefault(task, Channel())
            channel.open = channel.open or (self.lives.get(task, 0) != 0 and task not in self._returning)
            if task_plan.container != self.container:
                continue
            if task not in self.instances:
                link = self._link(self.instances, task, task_plan.name)
                self.sources[task] = Source(Window(settings.queue_bytes, horizon))
                self.consumers[task] = Consumer(task)
                self.verdicts.local(plan, task_plan, link)
            window, consumer = self.sources[task].window, self.consumers[task]
            window.limit_bytes, window.horizon = settings.queue_bytes, horizon
            consumer.high_bytes, consumer.low_bytes = settings.high_bytes, settings.low_bytes

    def _left(self, task: int) -> None:
        """A task is not where it was: nothing more goes there, and what was on its way is lost."""
        if self.lives.pop(task, 0):
            self.verdicts.lose_through(self.plan.tasks[task].component)
        self._returning.discard(task)
        self._pressure.forget(task)
        for header, frames in self.channels.pop(task).sift(lambda _: False):
            self._abandon(header, frames)
        if task in self.instances:
            self._forget(self.instances.pop(task))
            del self.sources[task], self.consumers[task]
            self._credit_due.discard(task)
            self.verdicts.left(task)

    def _forget(self, link: Link) -> None:
        self.statistics.dropped_acks += self.outboxes.pop(link).dropped
        self._undelivered(link.lanes[Lane.DATA].restart())

    @property
    def _timeout(self) -> float:
        return Settings.of(self.plan.logical.config).message_timeout

    def _link(self, table: dict[int, Link], key: int, name: str) -> Link:
        link = table[key] = Link(key, name, self.me, self._port)
        self.outboxes[link] = ControlOutbox(link, self._timeout)
        return link

    # --- what cannot go on ------------------------------------------------------------------------------------

    def _undelivered(self, messages: Sequence[Sequence[bytes]]) -> None:
        """Data that was never confirmed, and never will be."""
        for message in messages:
            header = Header.FromString(message[0])
            if header.kind == ROWS:
                self._drop(header, message[1:])

    def _abandon(self, header: Header, frames: Sequence[bytes]) -> None:
        """A batch of a local task that waited for credit cannot go any more."""
        self._drop(header, frames)
        self._let_go(header, frames)

    def _drop(self, header: Header, frames: Sequence[bytes]) -> None:
        self.statistics.dropped_stale += 1
        if header.ids:
            self._tell(LOST, column(frames[-2]))

    def _tell(self, verdict: int, roots: U64) -> None:
        """Reports roots failed or lost to the managers of their spouts."""
        roots = distinct(roots)
        for spout, part in by_task(roots):
            columns = [b""] * 5
            columns[2 if verdict == FAILED else 3] = roots[part].tobytes()
            self._acks(spout, columns)

    def _acks(self, spout: int, frames: Sequence[bytes]) -> None:
        if spout in self.instances:
            self.verdicts.acks(spout, frames, self._now)
        elif spout in self.plan.tasks:
            peer = self.peers.get(self.plan.tasks[spout].container)
            if peer is not None:
                self.outboxes[peer].acks(spout, frames, self._now)

    # --- credit of local output -------------------------------------------------------------------------------

    def _let_go(self, header: Header, frames: Sequence[bytes]) -> None:
        """A batch waits no longer; a former life's output pays nobody's credit."""
        if header.source in self.sources and header.source_life == self.lives.get(header.source):
            self._passed(header.source, header.rows, sum(map(len, frames)), waited=True)

    def _passed(self, task: int, rows: int, size: int, *, waited: bool = False) -> None:
        """A local task's output went on: that is what its own credit counts."""
        if self.sources[task].passed(rows, size, self._now, waited=waited):
            self._credit_due.add(task)
