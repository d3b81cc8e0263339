"""The instance as a process: the gateway on the main thread, the executor on its own, three queues between them."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ardea import parent_link
from ardea.backends.chosen import Opened, Scratch, backend_class
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import ArdeaError, ExitCode, LeftOut, UserError
from ardea.heron_instance.current_tuple import CurrentTuple
from ardea.heron_instance.environment import Stopping
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.executor_thread import ExecutorThread
from ardea.heron_instance.gateway import HEARTBEAT_EVERY, SpaceSignal
from ardea.heron_instance.inspector import Inspector
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.meters import Meters
from ardea.heron_instance.poison import RowHashes
from ardea.heron_instance.queues import BoundedQueue
from ardea.heron_instance.shell import Shell, nothing
from ardea.heron_instance.snapshots import RollingBack
from ardea.heron_instance.storage import Storage
from ardea.heron_instance.wires import Addresses, Wires
from ardea.heron_instance.worker import Done, Worker
from ardea.plan.definition import Definition
from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.plan.wire import packing_from_bytes
from ardea.protocol.lane import Lane, Message
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import Header, Order, Plan
from ardea.snapshots.place import files_at

if TYPE_CHECKING:
    from ardea.heron_instance.spans import Spans

OUT_MESSAGES = 64
"""That wait for the gateway.  An executor at full speed leaves it hardly a turn of the interpreter: what is emitted
meanwhile leaves late, and the credit and the pauses that it should know of are heard late."""


class InstanceProcess:
    """Wires one task; :meth:`run` returns the exit code.

    ``state_address`` and ``state_credential`` are what the task may use of the state manager: unless something else is
    set, the topology's, with the credential of the environment.
    """

    def __init__(
        self, definition: Definition, plan: LogicalPlan, task: int, container: int, addresses: Addresses
    ) -> None:
        self._topology = definition.topology
        self.state_address, self.state_credential = definition.state, ""
        instance = next(i for i in packing_from_bytes(definition.packing).instances if i.task == task)
        place = TaskPlan(task, instance.component, instance.index, container)
        self._shell = Shell(self, definition, plan, place, parent_link.life(), backend=_backend(plan, place))
        self._wires = Wires(task, addresses)
        self._outbox: BoundedQueue[OutMessage] = BoundedQueue(
            "data_out", OUT_MESSAGES, self._shell.settings.queue_bytes, self._wires.wake
        )
        self._room = SpaceSignal()
        self._stopping = False
        self._exit_code = ExitCode.TEMPORARY  # why it ends: nothing but the end of the topology is OK
        self._executor = ExecutorThread(self._shell, instance.name, self._wires.wake)
        storage = self._shell.settings.snapshot_storage
        self._storage = Storage(lambda: files_at(storage, definition.state, definition.topology))
        self._aside = Worker("outside")
        self._inspector = Inspector(place, self._shell.life, self._wires.wake)
        self._meters = Meters(self._shell, self._outbox, lambda: self.held_bytes)
        self._current_tuple = _current_tuple(self._shell, plan)
        self._spans = _spans(self._shell, plan, place)

    # --- the executor's view of the gateway ------------------------------------------------------------------

    @property
    def held(self) -> bool:
        """Whether output waits; if so, the executor hears when there is room."""
        self._room.wanted = True  # before it looks: a gateway that makes room in between sees it
        if self._shell.gateway.held or self._outbox.full:
            return True
        self._room.wanted = False
        return False

    @property
    def held_bytes(self) -> int:
        """How much output waits."""
        return self._shell.gateway.held_bytes + self._outbox.statistics().bytes

    def put(self, message: OutMessage) -> None:
        """From the executor thread."""
        self._outbox.put(message, message.size)

    def wait_room(self, most: int, timeout: float) -> bool:
        """From the executor thread."""
        snapshots = self._shell.snapshots

        def over() -> bool:
            return self._stopping or (snapshots is not None and snapshots.overdue)

        enough = self._room.wait(lambda: over() or self.held_bytes <= most, timeout)
        if self._stopping:
            raise Stopping
        if over():
            raise RollingBack
        return enough

    def consumed(self, header: Header, size: int) -> None:
        """From the executor thread."""
        self._shell.gateway.consumed(header, size)
        if self._shell.gateway.credit_due:
            self._wires.wake()

    def write(self, file: str, content: Iterable[bytes], done: Done) -> None:
        """From the executor thread."""
        self._storage.write(file, content, partial(self._done, done))

    def read(self, file: str, most: int | None = None) -> bytes:
        """From the executor thread, and from that of :meth:`aside`."""
        return self._storage.read(file, most)

    def aside(self, function: Callable[[], object], done: Done) -> None:
        """From the executor thread."""
        self._aside.call(function, partial(self._done, done))

    def _done(self, done: Done, error: Exception | None) -> None:
        """From another thread; the executor looks at it."""
        done(error)
        self._shell.inbox.put(nothing)

    # --- the gateway ------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Until the topology ends, the process is told to stop or to begin again, or the executor fails."""
        signal.signal(signal.SIGTERM, lambda *_: self._stop(ExitCode.TEMPORARY))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self._work()
        except LeftOut as error:
            parent_link.report(error.message)
        return self._end()

    def _work(self) -> None:
        shell, gateway = self._shell, self._shell.gateway
        next_second = next_metrics = due = time.monotonic()
        while not self._stopping:
            pause = min(1.0, max(0.0, due - time.monotonic()))
            ready = self._wires.wait(pause, self._has_work)
            now = time.monotonic()
            for lane, message in self._wires.receive(ready):
                shell.received(lane, message, now)
            self._offer()
            look = self._executor.look(now)
            if second := now >= next_second:
                self._meters.lagged(now - next_second)
                next_second = now + HEARTBEAT_EVERY
                self._executor.beat()
                self._outbox.capacity_bytes = shell.resize()
            due = gateway.tick(now, second=second)
            self._room.notify()
            if self._room.wanted and not (gateway.held or self._outbox.full):
                self._room.wanted = False
                shell.inbox.put(nothing)
            if now >= next_metrics:
                next_metrics = now + shell.settings.metrics_interval
                self._tell_metrics()
            due = min(due, next_second, next_metrics, look)
            if self._executor.over:
                break

    def _offer(self) -> None:
        while (message := self._outbox.take()) is not None:
            self._shell.gateway.offer(message)
        while self._inspector.ready:
            self._shell.gateway.tell(self._inspector.ready.popleft())

    def _has_work(self) -> bool:
        return not self._outbox.empty or self._stopping or self._executor.rung or bool(self._inspector.ready)

    def _tell_metrics(self, *, last: bool = False) -> None:
        self._meters.hand_over(self._wires.malformed, partial(self._wires.send_metrics, last=last))

    # --- what the shell asks for ------------------------------------------------------------------------------

    def transmit(self, _link: Link, lane: Lane, message: Message) -> None:
        """To the stream manager."""
        self._wires.send(lane, message)

    def start(self, plan: PhysicalPlan, message: Plan) -> None:
        """The executor's thread begins."""
        self._executor.start(partial(self._make_executor, plan), message)

    def inspect(self, order: Order) -> None:
        """The gateway's thread looks, or has another look."""
        self._inspector.asked(order)

    def exit(self) -> None:
        """The topology is over."""
        self._stop(ExitCode.OK)

    def _stop(self, code: ExitCode) -> None:
        """OK: the topology is over; that outweighs a SIGTERM, whichever came first."""
        self._stopping = True
        self._exit_code = min(self._exit_code, code)
        self._wires.wake()

    def _end(self) -> ExitCode:
        """Ends the executor, sends what is left, closes the sockets."""
        self._stopping = True
        self._room.notify()
        self._executor.end()
        self._offer()
        if self._spans is not None:
            self._spans.close()
        parent_link.beat(in_user_code=False)
        self._tell_metrics(last=True)
        self._wires.close()
        failure = self._executor.failure
        if failure is not None:
            lasts = isinstance(failure, ArdeaError) and failure.lasts
            return ExitCode.PERMANENT if lasts else ExitCode.TEMPORARY
        if self._current_tuple is not None:
            self._current_tuple.close()
        return self._exit_code

    def _make_executor(self, plan: PhysicalPlan) -> Executor:
        shell = self._shell
        topology_context = TopologyContext(
            plan,
            shell.task,
            shell.config,
            topology_id=self._topology,
            state_address=self.state_address,
            state_credential=self.state_credential,
            submit=shell.submit,
        )
        rng = np.random.default_rng()
        tracing = None if self._spans is None else self._spans.tracing(plan.tasks[shell.task], shell.instruments)
        environment = partial(shell.environment, current_tuple=self._current_tuple, tracing=tracing)
        return Executor(environment(plan, topology_context, time.monotonic, rng))


def _backend(logical: LogicalPlan, task: TaskPlan) -> Opened | None:
    """In the folder of the process; raises UserError: it cannot be loaded."""
    settings = Settings.of(logical.config, logical[task.component].config)
    if not settings.remembers or settings.state_backend == "memory":
        return None
    folder = os.environ.get("ARDEA_FOLDER") or tempfile.mkdtemp(prefix="ardea-")
    return Scratch(backend_class(settings.state_backend), Path(folder) / f"task-{task.task}.state").open


def _spans(shell: Shell, logical: LogicalPlan, task: TaskPlan) -> Spans | None:
    """Of a topology that is traced; raises UserError: they cannot be."""
    if not shell.settings.tracing_share:
        return None
    try:
        from ardea.heron_instance.spans import Spans  # OpenTelemetry is an extra

        spans = Spans(logical.name, task.name, shell.settings.tracing_share, shell.instruments.spans_dropped)
    except ModuleNotFoundError as error:
        what = f"{task.name} cannot trace (topology.tracing.share), for OpenTelemetry is not installed"
        raise UserError(
            what, hint="pip install 'ardea[tracing]'; an image needs EXTRAS=\"cli console drpc tracing\""
        ) from error
    except ValueError as error:  # OpenTelemetry reads variables also as it is imported
        what = f"{task.name} cannot trace: a variable OTEL_... of its environment is wrong: {error}"
        raise UserError(what) from error
    spans.serve_author()
    return spans


def _current_tuple(shell: Shell, logical: LogicalPlan) -> CurrentTuple | None:
    """Only for a bolt in a topology that puts poison aside, under a supervisor that starts it again."""
    folder = os.environ.get("ARDEA_FOLDER")
    if folder is None or shell.component.kind == "spout":
        return None
    path = Path(folder) / f"task-{shell.task}.current"
    if shell.snapshots is not None:
        shell.snapshots.report.died_on = int(next(iter(CurrentTuple.left(path)), 0))
        return CurrentTuple(path, RowHashes(pickle=shell.settings.pickle).ids)
    spouts = (Settings.of(logical.config, c.config) for c in logical if c.kind == "spout")
    if all(s.max_tuple_replays is None for s in spouts):
        return None
    shell.gateway.blame(CurrentTuple.left(path))
    return CurrentTuple(path)
