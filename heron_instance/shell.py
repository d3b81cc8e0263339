"""A task in one of its lives, whatever runs it: its gateway, its executor, and the queue between them.

Pure, but for what it asks of :class:`Outside`: ``ardea.heron_instance.process`` is one, with sockets and two threads,
and ``ardea.testing`` another, with a simulated network and a pace of its own for each of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ardea.backends.chosen import Opened
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import StateError
from ardea.heron_instance.current_tuple import CurrentTuple
from ardea.heron_instance.environment import Environment, Item, Output
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.gateway import Gateway
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.intervals import Storage
from ardea.heron_instance.observer import Observer
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.metrics import Identity, Registry
from ardea.plan.definition import Definition
from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.plan.wire import plan_from_message
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import CREDITS, EXIT, ORDER, PAUSE, ROWS, SNAPSHOTS, Header, Hello, Order, Plan
from ardea.versions import PROTOCOL

if TYPE_CHECKING:
    from ardea.heron_instance.tracing import Tracing

QUEUE_MESSAGES = 4096


class Outside(Output, Storage, Protocol):
    """Who runs gateway and executor, and stands between them and the container's stream manager."""

    def transmit(self, link: Link, lane: Lane, message: Message) -> None:
        """To the stream manager; never waits."""

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        """The first plan is here, and with it what :meth:`Shell.begin` needs."""

    def exit(self) -> None:
        """The topology is over.  Not through the queue: an executor whose output is held takes nothing from it."""

    def inspect(self, order: Order) -> None:
        """The threads of one task are to be looked at, if it is this one."""


class Shell:
    """Gateway and executor each call methods of their own; they share the queue."""

    def __init__(
        self,
        outside: Outside,
        definition: Definition,
        logical: LogicalPlan,
        task: TaskPlan,
        life: int,
        arrived: Callable[[], None] | None = None,
        backend: Opened | None = None,
    ) -> None:
        """``arrived``: something is in the queue, for an executor that does not sleep on it.

        ``backend``: opens one for each object of the component; None: its state is in memory.
        """
        self.life = life
        self.component = logical[task.component]
        self.registry = Registry(
            Identity(definition.topology, task.container, task.name, task.component, task.task, life)
        )
        self.instruments = Instruments(self.registry)
        self.config = {**logical.config, **self.component.config}
        self.settings = settings = Settings.of(logical.config, self.component.config)
        self.window = Window(settings.queue_bytes, settings.horizon)
        self.inbox: BoundedQueue[Item] = BoundedQueue("data_in", QUEUE_MESSAGES, settings.queue_bytes, arrived)
        self.executor: Executor | None = None
        self._outside = outside
        self.snapshots = TaskSnapshots(task, life, outside) if settings.remembers else None
        self._backend = backend
        self._logical, self._epoch = logical, definition.epoch
        self._started = self._over = False
        hello = Hello(
            protocol=PROTOCOL,
            topology=definition.topology,
            digest=logical.digest(),
            digests=logical.digests(),
            task=task.task,
            epoch=definition.epoch,
            build=definition.build,
        )
        self.gateway = Gateway(hello, life, self.window, outside.transmit, self)

    @property
    def task(self) -> int:
        """Its number."""
        return self.gateway.task

    # --- the gateway's ----------------------------------------------------------------------------------------

    def received(self, lane: Lane, message: Message, now: float) -> Header | None:
        """A message of the stream manager; returns its header, or None: it was none, and is counted."""
        try:
            header = checked(message)
        except MalformedError:
            self.gateway.malformed += 1
            return None
        self.gateway.received(lane, header, message[1:], now)
        return header

    def resize(self) -> int:
        """Each second: the queue holds what the window of time asks for; returns how many bytes of output may wait."""
        self.inbox.capacity_bytes = self.window.bytes
        return max(self.gateway.channel.window_bytes, self.settings.drain_size)

    def deliver(self, header: Header, frames: Sequence[bytes], size: int) -> None:
        """A message for the executor."""
        if header.kind == ROWS:
            self.inbox.put((header, frames), size)
            return
        order = Order.FromString(frames[0]) if header.kind == ORDER else None
        if order is not None and order.kind == EXIT:
            self._over = True  # before the executor hears that it is to end
            self._outside.exit()
        elif order is not None and order.HasField("inspect"):
            self._outside.inspect(order)  # an executor in a long call takes nothing from the queue
        elif order is not None and order.kind == SNAPSHOTS and self.snapshots is not None:
            self.snapshots.ordered(order)
            self.inbox.put(nothing)
        elif (key := _said_again(header)) is not None:
            self.inbox.put_newest(key, (header, frames))  # a call that never returns takes nothing from the queue
        else:
            self.inbox.put((header, frames), size)

    def reborn(self) -> None:
        """The stream manager has a new life."""
        if self.executor is not None:
            self.inbox.put(self._reborn)

    def planned(self, message: Plan) -> None:
        """The first plan starts the executor; a later one of the same epoch brings incarnations, others an update."""
        try:
            plan = plan_from_message(self._logical, message.packing, message.epoch)
        except StateError:
            self.gateway.malformed += 1
            return
        place = plan.tasks.get(self.task)
        if place is None or place.component != self.component.name:
            return  # an update has removed it, and it is about to end
        if message.epoch > self._epoch:
            self._epoch = message.epoch
            self.gateway.replanned(message.epoch, plan.logical.digest(), plan.logical.digests())
        if self._started:
            self.inbox.put(partial(self._learn, plan, message))
        else:
            self._started = True
            self._outside.start(plan, message)

    # --- the executor's ---------------------------------------------------------------------------------------

    def environment(
        self,
        plan: PhysicalPlan,
        context: TopologyContext,
        clock: Callable[[], float],
        rng: np.random.Generator,
        current_tuple: CurrentTuple | None = None,
        observer: Observer | None = None,
        tracing: Tracing | None = None,
    ) -> Environment:
        """What the executor is made of; the author's component is made here."""
        if self.snapshots is not None:
            self.snapshots.figures.clock = clock
        return Environment(
            plan=plan,
            task=plan.tasks[self.task],
            life=self.life,
            component=self.component.cls(),
            snapshots=self.snapshots,
            settings=self.settings,
            config=self.config,
            context=context,
            inbox=self.inbox,
            output=self._outside,
            window=self.window,
            instruments=self.instruments,
            clock=clock,
            rng=rng,
            current_tuple=current_tuple,
            tracing=tracing,
            observer=observer or Observer(),
            backend=self._backend,
            over=lambda: self._over,
        )

    def renewed(self, env: Environment) -> Environment:
        """For the executor of the next timeline: with a new object of the author's component."""
        return dataclasses.replace(env, component=self.component.cls(), context=env.context.renewed())

    def begin(self, message: Plan) -> None:
        """The executor's first steps, ahead of :meth:`Executor.work`."""
        assert self.executor is not None
        self.executor.reporter.learn(message.tasks)
        self.executor.set_active(active=message.active)
        self.executor.reporter.report()

    def submit(self, context: TopologyContext, function: Callable[[], object]) -> None:
        """From any thread: runs between calls of the component that has this context, unless another one goes on."""
        self.inbox.put(partial(self._submitted, context, function))

    def failed(self, error: BaseException) -> None:
        """The executor ends with it; the master hears of what no other life would mend."""
        executor = self.executor
        if executor is not None and (failure := executor.lifecycle.fails_topology(error)):
            executor.reporter.report(failure)

    def _submitted(self, context: TopologyContext, function: Callable[[], object]) -> None:
        assert self.executor is not None
        if context is self.executor.env.context:
            self.executor.submitted(function)

    def _reborn(self) -> None:
        assert self.executor is not None
        self.executor.manager_reborn()

    def _learn(self, plan: PhysicalPlan, message: Plan) -> None:
        assert self.executor is not None
        self.executor.planned(plan, message.tasks)


def _said_again(header: Header) -> Hashable | None:
    """What a message is about whose newest alone counts; None: each counts."""
    if header.kind == PAUSE:
        return PAUSE
    return tuple(pace.task for pace in header.paces) if header.kind == CREDITS else None


def nothing() -> None:
    """Wakes an executor that sleeps on its input queue."""
