"""A simulated instance: the real gateway and the real executor, each with a pace of its own.

The executor runs a turn at a time and takes no simulated time but what its tuples cost; its clock goes ahead of the
cluster's meanwhile, and what it does reaches the gateway when the cluster's clock gets there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import get_ident
from typing import Any

import numpy as np

from ardea.component import Bolt, Component
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError
from ardea.heron_instance.column_bolt import reads_columns
from ardea.heron_instance.environment import Environment, Item, Stopping
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.gateway import Gateway
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.outlet import OutMessage
from ardea.heron_instance.queues import BoundedQueue
from ardea.metrics import Identity, Registry
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.plan.wire import plan_from_bytes
from ardea.protocol.checked import checked
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import EXIT, ORDER, Header, Order, Plan
from ardea.testing.audit import InvariantError
from ardea.testing.clock import Alarm
from ardea.testing.executors import WatchedBolt, WatchedColumnBolt, WatchedSpout
from ardea.testing.world import Process, World, manager_name
from ardea.tuples import ColumnBatch, Tuple

TURN = 5e-6
"""Seconds that a turn of an executor takes at least, so that nothing goes on for ever in no time."""
DEFAULT_COST = 1e-5
QUEUE_MESSAGES = 4096
EVERY_SECOND = 1.0


class SimulatedInstance:
    """One task in one of its lives."""

    def __init__(self, world: World, task: TaskPlan, life: int) -> None:
        self.world = world
        self.name = task.name
        self.life = life
        self.holder = world.supervisors.holder(task.container)
        self.task = task
        self.alive = True
        self._stopping = self._waits_inside = False
        self.component: Component | None = None
        self.executor: Executor | None = None
        self.build = world.definition.build
        self._logical = world.logical
        self._epoch = world.definition.epoch
        self.settings = Settings.of(world.logical.config, world.logical[task.component].config)
        self.window = Window(self.settings.queue_bytes, self.settings.message_timeout / 6)
        self.inbox: BoundedQueue[Item] = BoundedQueue("data_in", QUEUE_MESSAGES, self.settings.queue_bytes)
        self.gateway = Gateway(
            task.task,
            life,
            world.definition.topology,
            world.logical.digest(),
            world.logical.digests(),
            (world.definition.epoch, world.definition.build),
            self.window,
            self._transmit,
            self._deliver,
            self._planned,
            self._reborn,
        )
        self._entropy = [world.seed, task.task, life, world.supervisors.replaced(task.container)]
        self._cost = world.cost.get(task.name, world.cost.get(task.component, DEFAULT_COST))
        self._ahead = 0.0  # the executor's clock, while that is ahead of the cluster's
        self._mail: deque[tuple[Lane, Message]] = deque()
        self._posted: deque[tuple[float, Callable[[], None], int]] = deque()
        self._posted_bytes = 0
        self._posted_limit = self.settings.drain_size
        self._burst = self._largest_burst = 0
        self._next_second = world.timeline.now
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
        now, gateway, manager = self.world.timeline.now, self.gateway, manager_name(self.task.container)
        held = self.held
        try:
            while self._mail:
                lane, message = self._mail.popleft()
                header = checked(message)
                self.world.heard(self.name, manager, header)
                gateway.received(lane, header, message[1:], now)
            while self._posted and self._posted[0][0] <= now:
                _, action, size = self._posted.popleft()
                self._posted_bytes -= size
                action()
            self._round.set(max(gateway.tick(now), now + TURN))
        except ArdeaError as error:  # refused, or another topology
            self._die(error)
            return
        if self._posted:
            self._round.set(self._posted[0][0])
        if now >= self._next_second:
            self._next_second = now + EVERY_SECOND
            self.inbox.capacity_bytes = self.window.bytes
            self._posted_limit = max(gateway.channel.window_bytes, self.settings.drain_size)
        if held and not self.held:
            self._wake()
        if self.world.audit is not None:
            self.world.audit.gateway(self.name, gateway)

    def _transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        self.world.post(self, manager_name(self.task.container), self.holder, lane, message)

    def _deliver(self, header: Header, frames: Sequence[bytes], size: int) -> None:
        if header.kind == ORDER and Order.FromString(frames[0]).kind == EXIT:
            self.world.timeline.at(self.world.timeline.now, self._exit)
            return
        self.inbox.put((header, frames), size)
        if self.world.audit is not None:
            senders = len(self.world.containers)
            waiting = self.inbox.statistics().bytes
            self.world.audit.inbox(self.name, waiting, self.settings.queue_bytes, senders)
        self._wake()

    def _reborn(self) -> None:
        if self.executor is not None:
            self.inbox.put(self.executor.manager_reborn)
            self._wake()

    def _planned(self, message: Plan) -> None:
        plan = plan_from_bytes(self._logical, message.packing, message.epoch)
        if self.task.task not in plan.tasks:
            return
        if message.epoch > self._epoch:
            self._epoch = message.epoch
            self.gateway.replanned(message.epoch, plan.logical.digest(), plan.logical.digests())
        if self.executor is not None:
            self.inbox.put(partial(self.executor.planned, plan, message.tasks))
        else:
            self._guard(partial(self._start, plan, message))
        self._wake()

    # --- the executor's view of the gateway -------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether output waits."""
        return self.gateway.held or self._posted_bytes >= self._posted_limit

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        self._largest_burst, self._burst = max(self._largest_burst, self._burst), 0
        return self.gateway.held_bytes + self._posted_bytes

    def put(self, message: OutMessage) -> None:
        """From the executor."""
        if self.world.audit is not None:
            self.world.audit.sent(message)
        self._burst += message.size
        self._post(partial(self.gateway.offer, message), message.size)

    def taken(self, header: Header, size: int) -> None:
        """From the executor."""
        self._post(partial(self.gateway.taken, header, size), 0)

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
        if self.executor is not None:
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
        """One round of :meth:`Executor.run`."""
        executor, inbox = self.executor, self.inbox
        assert executor is not None
        self._spend(TURN)
        self._burst = 0
        wake = executor.advance(self.clock())
        self._check_output()
        if executor.waits_for_room:
            self._turn.set(max(self.clock(), min(wake, self.clock() + 0.05)))
            return
        item = inbox.take()
        if item is not None:
            wake = self.clock()
        while item is not None:
            executor.handle(item)
            item = None if executor.waits_for_room or executor.busy else inbox.take()
        self._check_output()
        self._turn.set(max(self.clock(), min(wake, self.clock() + 1.0)))

    def _check_output(self) -> None:
        if self.world.audit is not None:
            held = self.held_bytes
            self.world.audit.instance(self.name, held, self.settings.max_held_bytes, self._largest_burst)

    def _start(self, plan: PhysicalPlan, message: Plan) -> None:
        world, logical = self.world, plan.logical
        component = logical[self.task.component]
        config = {**logical.config, **component.config}
        topology = world.definition.topology
        identity = Identity(topology, self.task.container, self.name, component.name, self.task.task, self.life)
        user: Any = component.cls()
        self.component = user
        self._meter(user)
        env = Environment(
            plan=plan,
            task=plan.tasks[self.task.task],
            life=self.life,
            component=user,
            settings=self.settings,
            config=config,
            context=TopologyContext(
                plan, self.task.task, config, submit=self._submit, clock=self.clock, now=self.clock
            ),
            inbox=self.inbox,
            output=self,
            window=self.window,
            instruments=Instruments(Registry(identity)),
            clock=self.clock,
            rng=np.random.default_rng(self._entropy),
        )
        watched: type[WatchedBolt | WatchedSpout] = WatchedSpout
        if component.kind == "bolt":
            watched = WatchedColumnBolt if reads_columns(component.cls) else WatchedBolt
        executor = self.executor = watched(env, world.record, world.audit)
        executor.thread = get_ident()
        executor.learn(message.tasks)
        executor.set_active(active=message.active)
        executor.report()
        executor.begin()

    def _submit(self, function: Callable[[], object]) -> None:
        def call() -> None:
            assert self.executor is not None
            self.executor.submitted(function)

        self.inbox.put(call)
        self._wake()

    def _cost_of_call(self) -> None:
        """In which what was emitted before may leave, as in a process, at the second look."""
        self._spend(self._cost)
        if self.executor is not None:
            self.executor.look(self.clock())
            self.executor.look(self.clock())

    def _meter(self, user: Any) -> None:
        """Puts a price on the calls that do the work."""
        record, audit, component, task = self.world.record, self.world.audit, self.task.component, self.task.task
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
                audit.processed(tup)

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
        if self.executor is not None:
            self.executor.close()

    def _exit(self) -> None:
        if self.alive:
            self.stop()
            self.world.ended(self, None)

    def _die(self, error: BaseException) -> None:
        self.kill()
        self.world.ended(self, error)
