"""The runner of a bolt: takes batches, has it called for their rows, sends emits and acks together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

from ardea.backends.contract import ScratchError
from ardea.component import Bolt, install, overrides
from ardea.errors import FailedException
from ardea.heron_instance.alarms import Alarms
from ardea.heron_instance.alignment import Aligned
from ardea.heron_instance.arrivals import Arrivals, Arrived
from ardea.heron_instance.batch_reader import BatchReader
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.column_bolt import ColumnCalls, reads_columns
from ardea.heron_instance.flushing import AFTER
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.many_rows import BoltMany
from ardea.heron_instance.poison import Poison
from ardea.heron_instance.quiet import Quiet
from ardea.heron_instance.raised_errors import RaisedErrors
from ardea.heron_instance.row_calls import BatchCalls, Calls, RowCalls
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.window_calls import EitherCalls, WindowCalls
from ardea.heron_instance.windowing import Windowing
from ardea.protocol.checked import MARKERS
from ardea.protocol.wire_pb2 import MARKER, ROWS, WATERMARK, Header, Order
from ardea.ready_made import sees_window
from ardea.tuples import ColumnBatch, Tuple
from ardea.windows.partial import PartialWindows


class BoltRunner:
    """Of one task."""

    open_rows = waiting_rows = 0
    spout_state = None

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._env = parts.env
        self._bolt = cast("Bolt", parts.env.component)
        kind = type(self._bolt)
        self._whole_batches = reads_columns(kind) or overrides(kind, "process_batch")
        self._alarms = Alarms(parts)
        self.emitted = BoltRows(parts, whole_batches=self._whole_batches)
        self._calls = _calls(parts, self.emitted, self._alarms.windows)
        self._quiet = Quiet(parts, self._alarms, self.emitted)
        self._begun = False
        self._reader = BatchReader(parts, self._calls, self.emitted.acking)
        self._arrivals = Arrivals(parts.env, parts.reporter.markers.upstream)
        self._next_row = 0
        self._per_row = 1e-3
        self._errors = RaisedErrors(parts)
        self._poison = None if parts.env.snapshots is None else Poison(parts, parts.env.snapshots, self.emitted)
        self._ends_turn = False  # with the present call
        self._install()

    def _install(self) -> None:
        """Gives the bolt its emit; a class with an ``emit`` of its own reaches it through the base's."""
        rows, calls, acking = self.emitted, self._calls, self.emitted.acking
        only = None if isinstance(calls, ColumnCalls) else self._parts.sending.only
        self._many = many = BoltMany(self._parts, rows, calls, None if only is None else only.rows)
        collector = _Collector(
            calls.emit,
            many.emit_many,
            calls.emit_batch,
            acking.ack,
            acking.fail,
            acking.ack_batch,
            acking.fail_batch,
            acking.reset_timeout,
        )
        install(self._bolt, self._env.task.component, collector)
        if not overrides(type(self._bolt), "emit"):
            self._bolt.emit = calls.emit  # type: ignore[method-assign]
        if not overrides(type(self._bolt), "emit_many"):
            self._bolt.emit_many = many.emit_many  # type: ignore[method-assign]

    def begun(self) -> None:
        """As the bolt is now, and with its hooks."""
        hooks = None
        if added := self._env.context.take_hooks():
            hooks = Hooks(added, self._env.task.task, self._env.clock)
            self.emitted.hooks = self.emitted.acking.hooks = hooks
            self._many.none_is_plain()
        if self._poison is not None:
            self._poison.look()
        self._calls.begun(hooks)
        self._alarms.begin(self._env.clock())
        self._begun = True
        self._arrivals.go_on()

    def take_over(self, former: Self) -> None:
        """What has come ahead of the timeline that begins."""
        self._arrivals.take_over(former._arrivals)

    def over(self) -> None:
        """The last snapshot counts."""
        self._parts.over(self.emitted)

    def activated(self, *, active: bool) -> None:
        """A bolt works on."""

    def ordered(self, order: Order) -> None:
        """A bolt holds when those do that it reads."""

    def replanned(self) -> None:
        """Other tasks may be read."""
        self._reader.replanned()

    def manager_reborn(self) -> None:
        """It sends again what matters."""

    # --- the input --------------------------------------------------------------------------------------------

    @property
    def waits_for_room(self) -> bool:
        """With held output, a bolt takes no more input."""
        return self._env.output.held

    @property
    def busy(self) -> bool:
        """Whether a batch is half done, or a flush is due."""
        return self.emitted.batch is not None or not (self._arrivals.idle or self._waits_outside)

    @property
    def _waits_outside(self) -> bool:
        """Whether a sink has too much that is not outside: what comes waits within its credit, and so spouts do."""
        return self._env.commits is not None and self._env.commits.full

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """Batches, and markers after them, wait in order until the component is initialised."""
        early = not self._begun and self._arrivals.idle and self._quiet.early(header)
        if not early and (header.kind == ROWS or header.kind in MARKERS):
            self._arrivals.put(header, frames)
            self._take()

    def _take(self) -> None:
        """The next batch, if the former one is done; markers on the way to it."""
        while (
            self.emitted.batch is None
            and self._begun
            and not (self._waits_outside or self._alarms.overdue)
            and (arrived := self._arrivals.next()) is not None
        ):
            if isinstance(arrived, Aligned):
                self._parts.snapshot(arrived.number, self.emitted)
            elif arrived.header.kind == MARKER:
                if arrived.header.end:
                    self._arrivals.ended(arrived.header.source)
                rests = self._parts.reporter.marked(arrived.header)
                if self._alarms.passed() or rests:
                    self._quiet.look()
            elif arrived.header.kind == WATERMARK:
                self._parts.reporter.heard(arrived.header)
                if self._alarms.passed():
                    self._quiet.look()
            else:
                self._open(arrived)

    def _open(self, arrived: Arrived) -> None:
        header, frames = arrived.header, arrived.frames
        if not arrived.counted:
            self._env.output.consumed(header, arrived.size)
        self._parts.reporter.markers.data(header.source)
        began = self._env.clock()
        batch = self._reader.read(header, frames)
        if batch is None:
            return
        batch.arrived = began
        if self._env.tracing is not None and header.traces:
            self._env.tracing.arrived(batch)
        self._next_row = 0
        if self._poison is not None:
            self._poison.take_out(batch)
        self.emitted.begin(batch)
        if self._env.current_tuple is not None:
            self._env.current_tuple.begin(batch)

    # --- the loop ---------------------------------------------------------------------------------------------

    def advance(self, now: float) -> float:
        """Timers, a chunk of the current batch, ticks, flushes, markers."""
        env, emitted, sending = self._env, self.emitted, self._parts.sending
        markers = self._parts.reporter.markers
        if env.snapshots is not None:
            self._arrivals.look(env.snapshots)
            if self._poison is not None and self._begun and self._poison.look():
                self._calls.begun(emitted.hooks)
            if markers.closed:
                self._parts.take_again(emitted)
        if env.output.held:
            return min(now + 0.05, sending.flush(emitted, now))
        alarms = self._alarms
        if alarms.any and alarms.fire(rows_wait=self.busy or not env.inbox.empty):
            self._quiet.look()
        self._take()
        if emitted.batch is not None:
            self._process(emitted.batch)
            now = env.clock()
        if alarms.any:
            alarms.tick(now)
        # A full batch leaves at once: its reader, or the spouts that wait for these acks, may have nothing else.
        busy = self.busy
        idle = not busy and env.inbox.empty
        waiting = self._parts.task_output.waiting
        full = max(emitted.processed, waiting) >= env.settings.batch_rows
        if full and not idle and now < emitted.acks_left + AFTER:
            full = False  # spouts have: these acks can wait for the next batch's
            if waiting >= env.settings.batch_rows:
                began, now = now, emitted.send_rows()
                self._parts.user_code.flushing.flushed(began, now)
        due = sending.flush(emitted, now, idle=idle, force=full)
        if self._parts.reporter.time is not None:
            due = min(due, self._quiet.tell(now))
        self._parts.reporter.report()
        if busy:
            return now
        return min(due, alarms.next(now), now + 1.0)

    def waited(self, seconds: float) -> None:
        """Idle."""
        self._env.instruments.spent.idle.value += seconds

    def hurry(self) -> None:
        """No more tuples in this turn."""
        self._ends_turn = True
        self._calls.stop()

    def _process(self, batch: InputBatch) -> None:
        """As many tuples as fit into a slice of time."""
        start, end, clock = self._next_row, len(batch.rows), self._env.clock
        if not self._whole_batches:
            end = min(end, start + int(self._env.settings.slice_ms / 2000 / self._per_row) + 1)
        began = clock()
        end = self.process(batch, start, end)
        if self._env.current_tuple is not None:
            self._env.current_tuple.clear()  # a task that dies between two slices was inside no tuple
        self._done(batch, start, end, clock() - began)

    def process(self, batch: InputBatch, start: int, end: int) -> int:
        """Has the bolt called for these rows; returns where it has got to."""
        self._ends_turn = False
        while start < end and not self._ends_turn:
            try:
                return self._calls.run(batch, start, end)
            except Exception as error:
                if isinstance(error, ScratchError) or sees_window(self._bolt):
                    raise  # not an error of these rows only; nobody would see the windows that are due after it
                blamed = self._calls.blamed(start, end)
                self._raised(batch, blamed, error)
                start = blamed.stop
        return start

    def _done(self, batch: InputBatch, start: int, end: int, elapsed: float) -> None:
        """Rows were processed, in so many seconds."""
        instruments, emitted, count = self._env.instruments, self.emitted, end - start
        if count:
            per_row = elapsed / count
            self._per_row += 0.3 * (max(per_row, 1e-8) - self._per_row)
            instruments.execute.observe(per_row, count)
            instruments.executed(batch.component, batch.stream).value += count
        if self._bolt.auto_ack:
            emitted.acking.ack_processed(batch, start, end)
        self._next_row = end
        emitted.processed += count
        self._errors.processed += count
        if end == len(batch.rows):
            emitted.batch = None
            self._env.window.consumed(len(batch.rows), batch.size, self._env.clock() - batch.arrived)

    def _raised(self, batch: InputBatch, rows: range, error: Exception) -> None:
        """An exception of ``process``: all goes back, or it fails its tuples, or ends the process (``auto_fail``)."""
        said = self._errors.note(batch, rows, error, rows.start - self._next_row)
        if self._poison is not None and not isinstance(error, FailedException):
            self._poison.blame(batch, rows, said)
        if not self._bolt.auto_fail and not isinstance(error, FailedException):
            raise error
        self.emitted.acking.fail_rest(batch, rows.start, rows.stop)


@dataclass(frozen=True, slots=True)
class _Collector:
    """What the base class's methods reach when the author overrides them."""

    emit: Callable[..., list[int] | None]
    emit_many: Callable[..., Mapping[int, int] | None]
    emit_batch: Callable[[Any, str, Any], None]
    ack: Callable[[Tuple], None]
    fail: Callable[[Tuple], None]
    ack_batch: Callable[[ColumnBatch, Any], None]
    fail_batch: Callable[[ColumnBatch, Any], None]
    reset_timeout: Callable[[Tuple], None]


def _calls(parts: Parts, rows: BoltRows, windows: Windowing | None) -> Calls:
    """How a bolt of this class is called."""
    bolt = parts.env.component
    if reads_columns(type(bolt)):
        return ColumnCalls(parts, rows)
    if windows is not None:
        return WindowCalls(parts, rows, windows)
    if isinstance(bolt, PartialWindows):
        return EitherCalls(parts, rows, reads=bolt.of.windows.reads_columns)
    return BatchCalls(parts, rows) if overrides(type(bolt), "process_batch") else RowCalls(parts, rows)
