"""The instance as a process: the gateway on the main thread, the executor on its own, three queues between them."""

from __future__ import annotations

import gc
import logging
import math
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ardea import leash
from ardea.component import Bolt, Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, ExitCode, StateError, printable
from ardea.heron_instance.blackbox import BlackBox
from ardea.heron_instance.bolt import BoltExecutor
from ardea.heron_instance.column_bolt import ColumnBoltExecutor, reads_columns
from ardea.heron_instance.environment import Environment, Item, Stopping
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.gateway import Gateway, Room
from ardea.heron_instance.instruments import Instruments
from ardea.heron_instance.long_calls import Lookout, Sender
from ardea.heron_instance.outlet import OutMessage
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.spout import SpoutExecutor
from ardea.loader import place_of
from ardea.metrics import Identity, Registry, observe_process
from ardea.plan.definition import Definition
from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan
from ardea.plan.wire import packing_from_bytes, plan_from_bytes
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import EXIT, ORDER, Header, Order, Plan
from ardea.transport import Dialled, Poller, caller, context

MESSAGES_A_ROUND = 64
QUEUE_MESSAGES = 4096
CLOSE_WITHIN = 5.0
COLLECT_AFTER = 20_000, 20, 20


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the container's other processes listen."""

    control: str
    data: str
    metrics: str


class InstanceProcess:
    """Wires one task; :meth:`run` returns the exit code.

    ``state_address`` and ``state_credential`` are what the task may use of the state manager: unless something else is
    set, the topology's, with the credential of the environment.
    """

    def __init__(
        self, definition: Definition, plan: LogicalPlan, task: int, container: int, addresses: Addresses
    ) -> None:
        self.definition = definition
        self.state_address, self.state_credential = definition.state, ""
        self.logical = plan
        packing = packing_from_bytes(definition.packing)
        instance = next(i for i in packing.instances if i.task == task)
        self.component = plan[instance.component]
        config = {**plan.config, **self.component.config}
        self.config = config
        self.settings = settings = Settings.of(plan.config, self.component.config)
        self.task = task
        self.name = instance.name
        self.life = leash.life()
        self.registry = Registry(
            Identity(
                topology=definition.topology,
                container=container,
                process=instance.name,
                component=instance.component,
                task=task,
                life=self.life,
            )
        )
        self.instruments = Instruments(self.registry)
        observe_process(self.registry)
        self._lag = self.registry.histogram("ardea_process_loop_lag_seconds")
        self.window = Window(settings.queue_bytes, settings.message_timeout / 6)
        self.poller = Poller()
        self.inbox: BoundedQueue[Item] = BoundedQueue("data_in", QUEUE_MESSAGES, settings.queue_bytes)
        self.outbox: BoundedQueue[OutMessage] = BoundedQueue(
            "data_out", QUEUE_MESSAGES, settings.queue_bytes, self.poller.wake
        )
        self.metrics_out: BoundedQueue[bytes] = BoundedQueue("metrics_out", 8, 1 << 20)
        self.room = Room()
        self.executor: Executor | None = None
        self._sender: Sender | None = None
        self._lookout: Lookout | None = None
        self._wants_room = False
        self._turns = -1
        self._epoch = definition.epoch
        self.stopping = False
        self._told = ExitCode.TEMPORARY  # why it ends: nothing but the end of the topology is OK
        self._user_metrics: set[str] = set()
        self.failure: BaseException | None = None
        self.gateway = Gateway(
            task,
            self.life,
            definition.topology,
            plan.digest(),
            plan.digests(),
            (definition.epoch, definition.build),
            self.window,
            self._transmit,
            self._deliver,
            self._planned,
            self._reborn,
        )
        ctx = self._context = context()
        identity = caller("t", task)
        self._lanes = {
            Lane.CONTROL: Dialled(ctx, identity, addresses.control),
            Lane.DATA: Dialled(ctx, identity, addresses.data),
        }
        self._metrics = Dialled(ctx, identity, addresses.metrics)
        for dialled in self._lanes.values():
            self.poller.watch(dialled)
        self._thread: threading.Thread | None = None
        self._black_box = self._open_black_box()
        self._queues()

    # --- the executor's view of the gateway ------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether output waits; if so, the executor hears when there is room."""
        self._wants_room = True  # before it looks: a gateway that makes room in between sees it
        if self.gateway.held or self.outbox.full:
            return True
        self._wants_room = False
        return False

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        return self.gateway.held_bytes + self.outbox.statistics().bytes

    def put(self, message: OutMessage) -> None:
        """From the executor thread."""
        self.outbox.put(message, message.size)

    def wait_room(self, most: int, timeout: float) -> bool:
        """From the executor thread."""
        enough = self.room.wait(lambda: self.stopping or self.held_bytes <= most, timeout)
        if self.stopping:
            raise Stopping
        return enough

    def taken(self, header: Header, size: int) -> None:
        """From the executor thread."""
        self.gateway.taken(header, size)
        if self.gateway.credit_due:
            self.poller.wake()

    # --- the gateway ------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the topology ends, the process is told to stop, or the executor fails."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        next_second = due = time.monotonic()
        while not self.stopping:
            pause = min(1.0, max(0.0, due - time.monotonic()))
            ready = self.poller.wait(pause, self._has_work)
            now = time.monotonic()
            for lane, dialled in self._lanes.items():
                for frames in dialled.receive(MESSAGES_A_ROUND) if dialled in ready else ():
                    self._received(lane, frames, now)
            while (message := self.outbox.take()) is not None:
                self.gateway.offer(message)
            look = math.inf if self._lookout is None else self._lookout.look(now, begins=not self.inbox.empty)
            due = min(self.gateway.tick(now), next_second, look)
            self.room.notify()
            if self._wants_room and not (self.gateway.held or self.outbox.full):
                self._wants_room = False
                self.inbox.put(_nothing)
            if now >= next_second:
                self._lag.observe(now - next_second)
                next_second = now + self.settings.metrics_interval
                self._second()
            if self._thread is not None and not self._thread.is_alive():
                break
        return self._end()

    def _has_work(self) -> bool:
        return not self.outbox.empty or self.stopping or (self._lookout is not None and self._lookout.rung)

    def _received(self, lane: Lane, message: Message, now: float) -> None:
        try:
            header = checked(message)
        except MalformedError:
            self.gateway.malformed += 1
            return
        self.gateway.received(lane, header, message[1:], now)

    def _second(self) -> None:
        executor = self.executor
        if executor is not None:
            former, self._turns = self._turns, executor.turns
            leash.beat(executor.in_user_code, same_call=executor.turns == former)
        else:
            leash.beat(in_user_code=False)
        self.inbox.capacity_bytes = self.window.bytes
        self.outbox.capacity_bytes = max(self.gateway.channel.window_bytes, self.settings.drain_size)
        self._count_emits()
        malformed = self.registry.counter("ardea_process_malformed_messages_total")
        dropped = sum(dialled.statistics.malformed for dialled in self._lanes.values())
        malformed.value = dropped + self.gateway.malformed + self.instruments.malformed
        self.metrics_out.put(self.registry.snapshot())
        while (snapshot := self.metrics_out.take()) is not None:
            self._metrics.send([snapshot])

    def _transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        self._lanes[lane].send(message)

    def _deliver(self, header: Header, frames: Sequence[bytes], size: int) -> None:
        if header.kind == ORDER and Order.FromString(frames[0]).kind == EXIT:
            self._stop(ExitCode.OK)  # not through the queue: an executor whose output is held takes nothing from it
            return
        self.inbox.put((header, frames), size)

    def _reborn(self) -> None:
        if self.executor is not None:
            self.inbox.put(self.executor.manager_reborn)

    def _planned(self, message: Plan) -> None:
        """The first plan starts the executor; a later one of the same epoch brings incarnations, others an update."""
        try:
            plan = plan_from_bytes(self.logical, message.packing, message.epoch)
        except StateError:
            self.gateway.malformed += 1
            return
        place = plan.tasks.get(self.task)
        if place is None or place.component != self.component.name:
            return  # an update has removed it, and it is about to end
        if message.epoch > self._epoch:
            self._epoch = message.epoch
            self.gateway.replanned(message.epoch, plan.logical.digest(), plan.logical.digests())
        if self._thread is not None:
            self.inbox.put(lambda: self._learn(plan, message))
            return
        self._thread = threading.Thread(
            target=self._execute, args=(plan, message), name=f"executor {self.name}", daemon=True
        )
        self._thread.start()

    def _learn(self, plan: PhysicalPlan, message: Plan) -> None:
        """On the executor thread."""
        assert self.executor is not None
        self.executor.planned(plan, message.tasks)

    def _stop(self, code: ExitCode) -> None:
        """OK: the topology is over; that outweighs a SIGTERM, whichever came first."""
        self.stopping = True
        self._told = min(self._told, code)
        self.poller.wake()

    def _end(self) -> ExitCode:
        """Ends the executor, sends what is left, closes the sockets."""
        self.stopping = True
        self.room.notify()
        executor, thread = self.executor, self._thread
        if executor is not None and thread is not None:
            self.inbox.put(lambda: setattr(executor, "finished", True))
            thread.join(CLOSE_WITHIN)
        if self._sender is not None:
            self._sender.stop(CLOSE_WITHIN)
        while (message := self.outbox.take()) is not None:
            self.gateway.offer(message)
        self._second()
        for dialled in (*self._lanes.values(), self._metrics):
            dialled.close()
        self._context.destroy(linger=1000)
        if self._black_box is not None and self.failure is None:
            self._black_box.close()
        if self.failure is not None:
            return ExitCode.PERMANENT if isinstance(self.failure, ArdeaError) else ExitCode.TEMPORARY
        return self._told

    # --- the executor thread ----------------------------------------------------------------------------------

    def _execute(self, plan: PhysicalPlan, message: Plan) -> None:
        try:
            # Rows by the thousand come and go: the default thresholds would look through them for cycles all the time.
            gc.freeze()
            gc.set_threshold(*COLLECT_AFTER)
            executor = self.executor = self._make_executor(plan)
            executor.learn(message.tasks)
            executor.thread = threading.get_ident()
            self._sender = Sender(executor.look, executor.clock, self.name)
            executor.bell = self._lookout = Lookout(executor, self._sender, self.poller.wake)
            self._sender.start()
            executor.set_active(active=message.active)
            executor.report()
            executor.run()
        except BaseException as error:
            self.failure = error
            text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
            self._logger.error("%s ends: %s", self.name, text)
            self.instruments.exception(error)
            leash.report(_one_line(self.name, error))
            if self.executor is not None and (failure := self.executor.fails_topology(error)):
                self.executor.report(failure=failure)
        finally:
            self.poller.wake()

    def _make_executor(self, plan: PhysicalPlan) -> Executor:
        cls: type[Spout | Bolt] = self.component.cls
        user = cls()
        topology_context = TopologyContext(
            plan,
            self.task,
            self.config,
            topology_id=self.definition.topology,
            state_address=self.state_address,
            state_credential=self.state_credential,
            submit=self._submit,
        )
        env = Environment(
            plan=plan,
            task=plan.tasks[self.task],
            life=self.life,
            component=user,
            settings=self.settings,
            config=self.config,
            context=topology_context,
            inbox=self.inbox,
            output=self,
            window=self.window,
            instruments=self.instruments,
            clock=time.monotonic,
            rng=np.random.default_rng(),
            black_box=self._black_box,
        )
        if self.component.kind == "spout":
            return SpoutExecutor(env)
        return ColumnBoltExecutor(env) if reads_columns(self.component.cls) else BoltExecutor(env)

    def _open_black_box(self) -> BlackBox | None:
        """Only for a bolt in a topology that puts poison aside, under a supervisor that starts it again."""
        spouts = (Settings.of(self.logical.config, c.config) for c in self.logical if c.kind == "spout")
        folder = os.environ.get("ARDEA_FOLDER")
        if folder is None or self.component.kind == "spout" or all(s.max_tuple_replays is None for s in spouts):
            return None
        path = Path(folder) / f"task-{self.task}.current"
        self.gateway.blame(BlackBox.left(path))
        return BlackBox(path)

    def _submit(self, function: Callable[[], object]) -> None:
        """From any thread: runs on the executor thread, between calls of the component."""

        def call() -> None:
            assert self.executor is not None
            self.executor.submitted(function)

        self.inbox.put(call)

    # --- metrics ----------------------------------------------------------------------------------------------

    @property
    def _logger(self) -> logging.Logger:
        return logging.getLogger(self.component.name)

    def _queues(self) -> None:
        for each in (self.inbox, self.outbox, self.metrics_out):
            self.registry.gauge("ardea_queue_depth", partial(_depth, each), queue=each.name)
            self.registry.gauge("ardea_queue_bytes", partial(_bytes, each), queue=each.name)
            self.registry.gauge("ardea_queue_capacity", partial(_capacity, each), queue=each.name)
        self.registry.gauge("ardea_instance_held_bytes", lambda: self.held_bytes)

    def _count_emits(self) -> None:
        if self.executor is not None:
            for name, metric in list(self.executor.env.context.metrics.items()):
                if name not in self._user_metrics:
                    self._user_metrics.add(name)
                    self.registry.user_metric(name, metric)
            for name, buffer in self.executor.outlet.buffers.items():
                counter = self.registry.counter("ardea_instance_tuples_emitted_total", stream=name)
                counter.value = buffer.emitted


def _depth(queue: BoundedQueue[Any]) -> int:
    return queue.statistics().depth


def _bytes(queue: BoundedQueue[Any]) -> int:
    return queue.statistics().bytes


def _capacity(queue: BoundedQueue[Any]) -> int:
    return queue.capacity_bytes


def _nothing() -> None:
    """Wakes an executor that sleeps on its input queue."""


def _one_line(name: str, error: BaseException) -> str:
    place = place_of(error)
    where = f" at {place}" if place else ""
    text = printable(error).strip().splitlines()
    kind = "" if isinstance(error, ArdeaError) else f"{type(error).__name__}: "  # ours are written to be read alone
    return f"{name}: {kind}{text[0] if text else ''}{where} (pid {os.getpid()})"
