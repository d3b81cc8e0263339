"""A simulated instance: the real gateway and the real executor, each with a pace of its own.

The executor runs a turn at a time and takes no simulated time but what its tuples cost; its clock goes ahead of the
cluster's meanwhile, and what it does reaches the gateway when the cluster's clock gets there.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ardea.component import Bolt, Component
from ardea.context import TopologyContext
from ardea.errors import ArdeaError
from ardea.heron_instance.column_bolt import reads_columns
from ardea.heron_instance.environment import Item, Stopping
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.shell import Shell
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Plan
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Alarm
from ardea.testing.observer import RecordingObserver
from ardea.testing.world import Process, World, manager_name
from ardea.tuples import ColumnBatch, Tuple

TURN = 5e-6
"""Seconds that a turn of an executor takes at least, so that nothing goes on for ever in no time."""
DEFAULT_COST = 1e-5
QUEUE_MESSAGES = 4096
EVERY_SECOND = 1.0


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
        self.component: Component | None = None
        self.build = world.definition.build
        self.shell = Shell(self, world.definition, world.logical, task, life, self._queued)
        if world.audit is not None:
            world.audit.counts(task, life, self.shell.registry.identity)
        self._entropy = [world.seed, task.task, life, world.supervisors.replaced(task.container)]
        self.cost = world.cost.get(task.name, world.cost.get(task.component, DEFAULT_COST))
        self._ahead = 0.0  # the executor's clock, while that is ahead of the cluster's
        self._mail: deque[tuple[Lane, Message]] = deque()
        self._posted: deque[tuple[float, Callable[[], None], int]] = deque()
        self._posted_bytes = 0
        self._posted_limit = self.shell.settings.drain_size
        self._burst = self._largest_burst = 0
        self._next_second = world.timeline.now
        self._work: Generator[float, Item | None] | None = None
        self._round = Alarm(world.timeline, self._gateway_round)
        self._turn = Alarm(world.timeline, self._executor_turn)
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
            self._offer(now)
            self._round.set(max(shell.gateway.tick(now), now + TURN))
        except ArdeaError as error:  # refused, or another topology
            self._die(error)
            return
        if self._posted:
            self._round.set(self._posted[0][0])
        if now >= self._next_second:
            self._next_second = now + EVERY_SECOND
            self._posted_limit = shell.resize()
        if held and not self.held:
            self._wake()
        if self.world.audit is not None:
            self.world.audit.gateway(self.name, shell.gateway)

    def _offer(self, until: float) -> None:
        """What the executor has handed over by then."""
        while self._posted and self._posted[0][0] <= until:
            _, action, size = self._posted.popleft()
            self._posted_bytes -= size
            action()

    # --- what the shell asks for ------------------------------------------------------------------------------

    def transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        """See :class:`Outside`, as for all of these."""
        self.world.post(self, manager_name(self.task.container), self.holder, lane, message)

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        """The executor begins at once."""
        self._guard(partial(self._begin, plan, message))
        self._wake()

    def exit(self) -> None:
        """When the present round is over."""
        self.world.timeline.at(self.world.timeline.now, self._exit)

    def _queued(self) -> None:
        if self.world.audit is not None:
            senders = len(self.world.containers)
            waiting = self.shell.inbox.statistics().bytes
            self.world.audit.inbox(self.name, waiting, self.shell.settings.queue_bytes, senders)
        self._wake()

    # --- the executor's view of the gateway -------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether output waits."""
        return self.shell.gateway.held or self._posted_bytes >= self._posted_limit

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        self._largest_burst, self._burst = max(self._largest_burst, self._burst), 0
        return self.shell.gateway.held_bytes + self._posted_bytes

    def put(self, message: OutMessage) -> None:
        """From the executor."""
        if self.world.audit is not None:
            self.world.audit.sent(self.name, message)
        self._burst += message.size
        self._post(partial(self.shell.gateway.offer, message), message.size)

    def taken(self, header: Header, size: int) -> None:
        """From the executor."""
        self._post(partial(self.shell.gateway.taken, header, size), 0)

    def wait_room(self, most: int, timeout: float) -> bool:
        """From the executor, inside an emit."""
        self._burst = 0

        def enough() -> bool:
            return not self.alive or self.held_bytes <= most

        self._waits_inside = True
        self.world.wait(self.task.component, enough, self.clock() + timeout)
        self._waits_inside = False
        if not self.alive:
            raise Stopping
        return enough()

    def _post(self, action: Callable[[], None], size: int) -> None:
        self._posted.append((self.clock(), action, size))
        self._posted_bytes += size
        self._round.set(self._posted[0][0])

    # --- the executor -----------------------------------------------------------------------------------------

    def clock(self) -> float:
        """The executor's time."""
        return max(self._ahead, self.world.timeline.now)

    def _spend(self, seconds: float) -> None:
        self._ahead = self.clock() + seconds

    def _wake(self) -> None:
        if self.shell.executor is not None:
            self._turn.set(self.clock())

    def _executor_turn(self) -> None:
        if self.alive and self.world.may_run(self.task.component, self._executor_turn):
            self._guard(self._run)

    def _guard(self, action: Callable[[], None]) -> None:
        """An exception ends the process; the supervisor decides what then."""
        try:
            action()
        except Stopping:
            if self._stopping:
                self._close()
        except InvariantError:
            raise
        except Exception as error:
            self._die(error)

    def _run(self) -> None:
        """One turn, and up to the next."""
        executor, inbox = self.shell.executor, self.shell.inbox
        assert executor is not None
        self._spend(TURN)
        self._burst = 0
        self._check_output()
        if self._work is None:
            self._work = executor.work()
            pause = next(self._work)
        else:
            pause = self._work.send(None if executor.held_back else inbox.take())
        self._check_output()
        if executor.held_back:
            pause = pause or 0.05
        elif not inbox.empty:
            pause = 0.0
        self._turn.set(self.clock() + pause)

    def _check_output(self) -> None:
        if self.world.audit is not None:
            held = self.held_bytes
            self.world.audit.instance(self.name, held, self.shell.settings.max_held_bytes, self._largest_burst)

    def _begin(self, plan: PhysicalPlan, message: Plan) -> None:
        world, shell, component = self.world, self.shell, self.shell.component
        context = TopologyContext(
            plan,
            self.task.task,
            shell.config,
            topology_id=world.definition.topology,
            submit=shell.submit,
            clock=self.clock,
            now=self.clock,
        )
        rng = np.random.default_rng(self._entropy)
        observer = RecordingObserver(self.task, component.kind == "spout", world.record, world.audit)
        env = shell.environment(plan, context, self.clock, rng, observer=observer)
        self.component = env.component
        self._meter(self.component)
        shell.executor = Executor(env)
        shell.begin(message)

    def _cost_of_call(self) -> None:
        """In which what was emitted before may leave, as in a process, at the second look."""
        self._spend(self.cost)
        if self.shell.executor is not None:
            self.shell.executor.user_code.look(self.clock())
            self.shell.executor.user_code.look(self.clock())

    def _meter(self, user: Any) -> None:
        """Puts a price on the calls that do the work."""
        record, audit, name = self.world.record, self.world.audit, self.task.name
        component, task = self.task.component, self.task.task
        if not isinstance(user, Bolt):
            call = user.next_tuple

            def next_tuple() -> None:
                self._cost_of_call()
                call()

            user.next_tuple = next_tuple
            return
        process, process_batch, tick = user.process, user.process_batch, user.process_tick
        process_columns = user.process_columns

        def seen(tup: Tuple) -> None:
            self._cost_of_call()
            record.processed(component, task, tup)
            if audit is not None:
                audit.processed(name, tup)

        def metered(tup: Tuple) -> None:
            seen(tup)
            process(tup)

        def metered_batch(rows: Sequence[Tuple]) -> None:
            for tup in rows:
                seen(tup)
            process_batch(rows)

        def metered_columns(columns: ColumnBatch) -> None:
            batch: Any = columns._batch
            for index, values in enumerate(batch.rows):
                seen(Tuple(values, index, batch))
            process_columns(columns)

        def ticked(tup: Tuple) -> None:
            record.ticks[component] += 1
            tick(tup)

        user.process, user.process_tick = metered, ticked  # type: ignore[method-assign]
        if type(user).process_batch is not Bolt.process_batch:
            user.process_batch = metered_batch  # type: ignore[method-assign]
        if reads_columns(type(user)):
            user.process_columns = metered_columns  # type: ignore[method-assign]

    # --- the end ----------------------------------------------------------------------------------------------

    def freeze(self, until: float) -> None:
        """Neither thread does anything until then."""
        self._round.hold(until)
        self._turn.hold(until)

    def kill(self) -> None:
        """Ends at once: nothing that waits leaves any more."""
        self.alive = False
        self._round.cancel()
        self._turn.cancel()
        self._posted.clear()

    def stop(self) -> None:
        """Ends in order: the component is closed, behind a call that waits inside an emit."""
        self.kill()
        self._stopping = True
        if not self._waits_inside:
            self._close()

    def _close(self) -> None:
        if self.shell.executor is not None:
            self.shell.executor.close()

    def _exit(self) -> None:
        if self.alive:
            self.stop()
            self.world.ended(self, None)

    def _die(self, error: BaseException) -> None:
        """What is left is sent, as a process does."""
        self.shell.failed(error)
        self._offer(math.inf)
        self.kill()
        self.world.ended(self, error)
