"""A simulated instance: the real gateway and the real executor, each with a pace of its own.

What the executor does reaches the gateway when the cluster's clock gets where the executor's is.
"""

from __future__ import annotations

import math
from asyncio import CancelledError
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from ardea.errors import ArdeaError
from ardea.heron_instance.environment import Stopping
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.shell import Shell
from ardea.heron_instance.snapshots import RollingBack
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Order, Plan
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Alarm
from ardea.testing.executor import TURN, SimulatedExecutor
from ardea.testing.handover import Handover
from ardea.testing.world import Process, World, manager_name

EVERY_SECOND = 1.0
WRITE = 0.01
"""Seconds that a file of a snapshot takes."""
ENDS = (Exception, SystemExit, CancelledError)
"""What ends a process that raises it.  All else, as of ``pytest.fail``, is a test's own, and leaves the cluster."""


class SimulatedInstance:
    """One task in one of its lives: the real shell, and what is outside of it (see :class:`Outside`)."""

    def __init__(self, world: World, task: TaskPlan, life: int) -> None:
        self.world = world
        self.name = task.name
        self.life = life
        self.holder = world.supervisors.holder(task.container)
        self.task = task
        self.alive = True
        self._stopping = self._waits_inside = False
        self.build = world.definition.build
        backend = world.scratches.of(f"{task.name}-{life}")
        self.shell = Shell(self, world.definition, world.plan.logical, task, life, self._queued, backend)
        if world.audit is not None:
            world.audit.counts(task, life, self.shell.registry.identity)
        self.executor = SimulatedExecutor(world, task, self.shell, self._guard, self._check_output)
        self._handover = Handover(self.shell.settings.drain_size)
        self._mail: deque[tuple[Lane, Message]] = deque()
        self._next_second = world.timeline.now
        self._round = Alarm(world.timeline, self._gateway_round)
        self._round.set(world.timeline.now)

    # --- the gateway ------------------------------------------------------------------------------------------

    def arrived(self, sender: Process, lane: Lane, message: Message) -> None:
        """A message of the manager; that of another container means a former task of this name."""
        if sender.name != manager_name(self.task.container):
            return
        self._mail.append((lane, message))
        self._round.set(self.world.timeline.now)

    def _gateway_round(self) -> None:
        now, shell, manager = self.world.timeline.now, self.shell, manager_name(self.task.container)
        held = self.held
        try:
            while self._mail:
                header = shell.received(*self._mail.popleft(), now)
                if header is not None:
                    self.world.heard(self.name, manager, header)
            self._handover.offer(now)
            self._round.set(max(shell.gateway.tick(now), now + TURN))
        except ArdeaError as error:  # refused, or another topology
            self._die(error)
            return
        if (following := self._handover.next) is not None:
            self._round.set(following)
        if now >= self._next_second:
            self._next_second = now + EVERY_SECOND
            self._handover.limit = shell.resize()
        if held and not self.held:
            self.executor.wake()
        if self.world.audit is not None:
            self.world.audit.gateway(self.name, shell.gateway)

    # --- what the shell asks for ------------------------------------------------------------------------------

    def transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        """See :class:`Outside`, as for all of these."""
        self.world.post(self, manager_name(self.task.container), self.holder, lane, message)

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        """The executor begins at once."""
        self._guard(partial(self.executor.begin, plan, message))
        self.executor.wake()

    def exit(self) -> None:
        """When the present round is over."""
        self.world.timeline.at(self.world.timeline.now, self._exit)

    def inspect(self, order: Order) -> None:
        """A simulated task has no threads of its own: who asks hears nothing, as of a process that stands still."""

    def _queued(self) -> None:
        if self.world.audit is not None:
            senders = len(self.world.names.containers)
            waiting = self.shell.inbox.statistics().bytes
            self.world.audit.inbox(self.name, waiting, self.shell.settings.queue_bytes, senders)
        self.executor.wake()

    # --- the executor's view of the gateway -------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether output waits."""
        return self.shell.gateway.held or self._handover.full

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        self._handover.looked_at()
        return self.shell.gateway.held_bytes + self._handover.bytes

    def put(self, message: OutMessage) -> None:
        """From the executor."""
        if self.world.audit is not None:
            self.world.audit.sent(self.name, message)
        self._handover.burst += message.size
        self._post(partial(self.shell.gateway.offer, message), message.size)

    def consumed(self, header: Header, size: int) -> None:
        """From the executor."""
        self._post(partial(self.shell.gateway.consumed, header, size), 0)

    def wait_room(self, most: int, timeout: float) -> bool:
        """From the executor, inside an emit."""
        self._handover.burst = 0

        snapshots = self.shell.snapshots

        def overdue() -> bool:
            return snapshots is not None and snapshots.overdue

        def enough() -> bool:
            return not self.alive or overdue() or self.held_bytes <= most

        self._waits_inside = True
        try:
            self.world.waits.wait(self.task.component, enough, self.executor.clock() + timeout)
        finally:
            self._waits_inside = False
        if not self.alive:
            raise Stopping
        if overdue():
            raise RollingBack
        return enough()

    def write(self, file: str, content: Iterable[bytes], done: Callable[[Exception | None], None]) -> None:
        """From the executor; it takes a while, and is done although the process may have died meanwhile."""
        store = self.world.store

        def write() -> None:
            try:
                store.write_file(file, b"".join(content), lambda error: done(OSError(error) if error else None))
            except ArdeaError as error:
                done(error)

        self.world.timeline.at(self.executor.clock() + WRITE, write)
        self.world.timeline.at(self.executor.clock() + WRITE, self.executor.wake)

    def aside(self, function: Callable[[], object], done: Callable[[Exception | None], None]) -> None:
        """From the executor; what it does is done outside although the process may have died meanwhile."""

        def call() -> None:
            error: Exception | None = None
            try:
                function()
            except Exception as raised:
                error = raised
            self.world.timeline.at(self.world.timeline.now + WRITE, lambda: done(error))
            self.world.timeline.at(self.world.timeline.now + WRITE, self.executor.wake)

        self.world.timeline.at(self.executor.clock() + WRITE, call)

    def read(self, file: str, most: int | None = None) -> bytes:
        """From the executor."""
        if self.world.store.unreadable:
            raise OSError("no answer")
        if file not in self.world.store.files:
            raise FileNotFoundError(file)
        return self.world.store.files[file][:most]

    def _post(self, action: Callable[[], None], size: int) -> None:
        handover = self._handover
        handover.post(self.executor.clock(), action, size)
        if handover.next is not None:
            self._round.set(handover.next)

    # --- the executor -----------------------------------------------------------------------------------------

    def _guard(self, action: Callable[[], None]) -> None:
        """An exception ends the process; the supervisor decides what then."""
        try:
            action()
        except Stopping:
            if self._stopping:
                self._close()
        except InvariantError:
            raise
        except ENDS as error:
            if self.alive:
                self._die(error)
            elif self._stopping:  # it ends anyway
                self.world.record.errors.append((self.name, error))

    def _check_output(self) -> None:
        if self.world.audit is not None:
            held, limit = self.held_bytes, self.shell.settings.max_held_bytes
            self.world.audit.instance(self.name, held, limit, self._handover.largest_burst)

    # --- the end ----------------------------------------------------------------------------------------------

    def freeze(self, until: float) -> None:
        """Neither thread does anything until then."""
        self._round.hold(until)
        self.executor.freeze(until)

    def kill(self) -> None:
        """Ends at once: nothing that waits leaves any more."""
        self.alive = False
        self._round.cancel()
        self.executor.stop()
        self._handover.clear()

    def stop(self) -> None:
        """Ends in order: the component is closed, behind a call that waits inside an emit."""
        self.kill()
        self._stopping = True
        if not self._waits_inside:
            self._close()

    def _close(self) -> None:
        if self.shell.executor is not None:
            self._guard(self.shell.executor.close)

    def _exit(self) -> None:
        if self.alive:
            self.stop()
            self.world.ended(self, None)

    def _die(self, error: BaseException) -> None:
        """What is left is sent, as a process does."""
        self.shell.failed(error)
        self._handover.offer(math.inf)
        self.kill()
        self.world.ended(self, error)
