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
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ardea import leash
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, ExitCode, printable
from ardea.heron_instance.blackbox import BlackBox
from ardea.heron_instance.environment import Stopping
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.gateway import Room
from ardea.heron_instance.long_calls import Lookout, Sender
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.shell import QUEUE_MESSAGES, Shell
from ardea.loader import place_of
from ardea.metrics import observe_process
from ardea.plan.definition import Definition
from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Plan
from ardea.transport import Dialled, Poller, caller, context

MESSAGES_A_ROUND = 64
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
        instance = next(i for i in packing_from_bytes(definition.packing).instances if i.task == task)
        self.name = instance.name
        place = TaskPlan(task, instance.component, instance.index, container)
        self.shell = Shell(self, definition, plan, place, leash.life())
        self.registry = self.shell.registry
        observe_process(self.registry)
        self._lag = self.registry.histogram("ardea_process_loop_lag_seconds")
        self.poller = Poller()
        self.outbox: BoundedQueue[OutMessage] = BoundedQueue(
            "data_out", QUEUE_MESSAGES, self.shell.settings.queue_bytes, self.poller.wake
        )
        self.metrics_out: BoundedQueue[bytes] = BoundedQueue("metrics_out", 8, 1 << 20)
        self.room = Room()
        self._sender: Sender | None = None
        self._lookout: Lookout | None = None
        self._wants_room = False
        self._turns = -1
        self.stopping = False
        self._told = ExitCode.TEMPORARY  # why it ends: nothing but the end of the topology is OK
        self._user_metrics: set[str] = set()
        self.failure: BaseException | None = None
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
        if self.shell.gateway.held or self.outbox.full:
            return True
        self._wants_room = False
        return False

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        return self.shell.gateway.held_bytes + self.outbox.statistics().bytes

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
        self.shell.gateway.taken(header, size)
        if self.shell.gateway.credit_due:
            self.poller.wake()

    # --- the gateway ------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the topology ends, the process is told to stop, or the executor fails."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        shell, gateway = self.shell, self.shell.gateway
        next_second = due = time.monotonic()
        while not self.stopping:
            pause = min(1.0, max(0.0, due - time.monotonic()))
            ready = self.poller.wait(pause, self._has_work)
            now = time.monotonic()
            for lane, dialled in self._lanes.items():
                for frames in dialled.receive(MESSAGES_A_ROUND) if dialled in ready else ():
                    shell.received(lane, frames, now)
            while (message := self.outbox.take()) is not None:
                gateway.offer(message)
            look = math.inf if self._lookout is None else self._lookout.look(now, begins=not shell.inbox.empty)
            due = min(gateway.tick(now), next_second, look)
            self.room.notify()
            if self._wants_room and not (gateway.held or self.outbox.full):
                self._wants_room = False
                shell.inbox.put(_nothing)
            if now >= next_second:
                self._lag.observe(now - next_second)
                next_second = now + shell.settings.metrics_interval
                self._second()
            if self._thread is not None and not self._thread.is_alive():
                break
        return self._end()

    def _has_work(self) -> bool:
        return not self.outbox.empty or self.stopping or (self._lookout is not None and self._lookout.rung)

    def _second(self) -> None:
        executor = self.shell.executor
        if executor is not None:
            turns = executor.user_code.turns
            former, self._turns = self._turns, turns
            leash.beat(executor.in_user_code, same_call=turns == former)
        else:
            leash.beat(in_user_code=False)
        self.outbox.capacity_bytes = self.shell.resize()
        self._count_emits()
        malformed = self.registry.counter("ardea_process_malformed_messages_total")
        dropped = sum(dialled.statistics.malformed for dialled in self._lanes.values())
        malformed.value = dropped + self.shell.gateway.malformed + self.shell.instruments.malformed
        self.metrics_out.put(self.registry.snapshot())
        while (snapshot := self.metrics_out.take()) is not None:
            self._metrics.send([snapshot])

    # --- what the shell asks for ------------------------------------------------------------------------------

    def transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        """To the stream manager."""
        self._lanes[lane].send(message)

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        """The executor's thread begins."""
        self._thread = threading.Thread(
            target=self._execute, args=(plan, message), name=f"executor {self.name}", daemon=True
        )
        self._thread.start()

    def exit(self) -> None:
        """The topology is over."""
        self._stop(ExitCode.OK)

    def _stop(self, code: ExitCode) -> None:
        """OK: the topology is over; that outweighs a SIGTERM, whichever came first."""
        self.stopping = True
        self._told = min(self._told, code)
        self.poller.wake()

    def _end(self) -> ExitCode:
        """Ends the executor, sends what is left, closes the sockets."""
        self.stopping = True
        self.room.notify()
        executor, thread = self.shell.executor, self._thread
        if executor is not None and thread is not None:
            self.shell.inbox.put(lambda: setattr(executor, "finished", True))
            thread.join(CLOSE_WITHIN)
        if self._sender is not None:
            self._sender.stop(CLOSE_WITHIN)
        while (message := self.outbox.take()) is not None:
            self.shell.gateway.offer(message)
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
            executor = self.shell.executor = self._make_executor(plan)
            user_code = executor.user_code
            self._sender = Sender(user_code.look, user_code.clock, self.name)
            user_code.bell = self._lookout = Lookout(user_code, self._sender, self.poller.wake)
            self._sender.start()
            self.shell.begin(message)
            executor.run()
        except BaseException as error:
            self.failure = error
            text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
            self._logger.error("%s ends: %s", self.name, text)
            self.shell.instruments.exception(error)
            leash.report(_one_line(self.name, error))
            self.shell.failed(error)
        finally:
            self.poller.wake()

    def _make_executor(self, plan: PhysicalPlan) -> Executor:
        shell = self.shell
        topology_context = TopologyContext(
            plan,
            shell.task,
            shell.config,
            topology_id=self.definition.topology,
            state_address=self.state_address,
            state_credential=self.state_credential,
            submit=shell.submit,
        )
        rng = np.random.default_rng()
        return Executor(shell.environment(plan, topology_context, time.monotonic, rng, self._black_box))

    def _open_black_box(self) -> BlackBox | None:
        """Only for a bolt in a topology that puts poison aside, under a supervisor that starts it again."""
        spouts = (Settings.of(self.logical.config, c.config) for c in self.logical if c.kind == "spout")
        folder = os.environ.get("ARDEA_FOLDER")
        if folder is None or self.shell.component.kind == "spout" or all(s.max_tuple_replays is None for s in spouts):
            return None
        path = Path(folder) / f"task-{self.shell.task}.current"
        self.shell.gateway.blame(BlackBox.left(path))
        return BlackBox(path)

    # --- metrics ----------------------------------------------------------------------------------------------

    @property
    def _logger(self) -> logging.Logger:
        return logging.getLogger(self.shell.component.name)

    def _queues(self) -> None:
        for each in (self.shell.inbox, self.outbox, self.metrics_out):
            self.registry.gauge("ardea_queue_depth", partial(_depth, each), queue=each.name)
            self.registry.gauge("ardea_queue_bytes", partial(_bytes, each), queue=each.name)
            self.registry.gauge("ardea_queue_capacity", partial(_capacity, each), queue=each.name)
        self.registry.gauge("ardea_instance_held_bytes", lambda: self.held_bytes)

    def _count_emits(self) -> None:
        if self.shell.executor is not None:
            for name, metric in list(self.shell.executor.env.context.metrics.items()):
                if name not in self._user_metrics:
                    self._user_metrics.add(name)
                    self.registry.user_metric(name, metric)
            for name, buffer in self.shell.executor.outlet.buffers.items():
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
