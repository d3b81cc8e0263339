"""The bolt executor: takes batches, calls ``process`` for each tuple, sends emits and acks together."""

from __future__ import annotations

import math
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from itertools import repeat
from threading import get_ident
from typing import Any

from ardea.errors import EncodingError, FailedException, ProtocolError, UserError, printable
from ardea.heron_instance.anchored import Anchored
from ardea.heron_instance.environment import NO_THREAD, Environment
from ardea.heron_instance.flushing import AFTER
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.inlet import UNANCHORED, WHOLE_BATCH, InputBatch, decode_columns
from ardea.heron_instance.sendable import own
from ardea.loader import place_of
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import rows_of
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import ARROW, MARKER, ROWS, Header
from ardea.tuples import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_FIELDS, TICK_STREAM, Tuple, TupleBatch

NOBODY, EVERYBODY = Tuple((), UNANCHORED, None), Tuple((), WHOLE_BATCH, None)
"""The current tuple outside of ``process``, and inside ``process_batch``: what is emitted is marked with its number."""


class TickBatch:
    """Where a tick tuple says it comes from."""

    component, stream, task, fields = SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, TICK_FIELDS

    @staticmethod
    def id_of(index: int) -> str:
        """Ticks have a number only."""
        return f"tick:{index}"


class BoltExecutor(Anchored):
    """Runs one bolt task."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self._next_row = 0
        self._per_row = 1e-3
        self._waiting: deque[tuple[Header, Sequence[bytes]]] = deque()
        self._next_tick = math.inf
        self._ticks = 0
        self._raised_at = 0
        self._ends_turn = False  # with the present call
        self._run: Callable[[InputBatch, int, int], int]
        self._stop_run: Callable[[], None] = lambda: None
        self._bind = self._install()

    # --- user code --------------------------------------------------------------------------------------------

    def _install(self) -> Callable[[], None]:
        """Gives the bolt its emit, and makes the loop that calls ``process``; both share the current tuple.

        Once, as a bolt may keep its emit: what is returned looks at what ``initialize`` has made of the bolt, and puts
        hooks between them.
        """
        current = NOBODY
        process: Callable[[Tuple], None]
        process_batch: Callable[[Sequence[Tuple]], None]
        auto_anchor = True
        outlet, plain = self.outlet, self.only is not None
        rows = [] if self.only is None else self.only.rows
        append = rows.append
        inputs: list[tuple[Any, ...]] = []  # of the present turn; none are left once it is told to end
        thread = get_ident()

        def emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            mark = current._index if auto_anchor else UNANCHORED
            return self._emit(values, stream, mark, anchors, direct_task, need_task_ids)

        def plain_emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if (
                stream != "default"
                or anchors is not None
                or direct_task is not None
                or need_task_ids
                or get_ident() != thread
            ):
                return emit(values, stream, anchors, direct_task, need_task_ids)
            append(values if type(values) is tuple else tuple(values) if type(values) is list else own(values))
            if len(rows) >= outlet.row_limit:
                self.overflow()
            return None

        def run(batch: InputBatch, start: int, end: int) -> int:
            nonlocal current, inputs
            marked = self._anchoring.run(len(rows), WHOLE_BATCH if whole else start) if plain and auto_anchor else None
            try:
                if whole:
                    current = EVERYBODY
                    with self.user_code:
                        process_batch(TupleBatch(batch.rows[start:end], batch))
                    return end
                inputs = batch.rows[start:end] if type(batch.rows) is list else list(batch.rows[start:end])
                # One at a time: who is done with a tuple leaves its memory, still in the cache, to the next.
                tuples = map(Tuple, inputs, range(start, end), repeat(batch))
                with self.user_code:
                    if marked is not None:
                        ended = marked.ends.append
                        for current in tuples:
                            process(current)
                            ended(len(rows))
                    else:
                        for current in tuples:
                            process(current)
                return start if current is NOBODY else current._index + 1
            except BaseException:
                self._raised_at = current._index
                raise
            finally:
                current, inputs = NOBODY, []
                if marked is not None:
                    self._anchoring.close(marked, len(rows))

        whole = self._whole_batches

        def emit_batch(batch: Any, stream: str, anchors: Any) -> None:
            self.emit_columns(batch, stream, anchors, current._index)

        def bind() -> None:
            nonlocal process, process_batch, auto_anchor, thread
            process, process_batch, auto_anchor = self.bolt.process, self.bolt.process_batch, self.bolt.auto_anchor
            if self.env.black_box is not None:
                process = self.env.black_box.recording(process)
            if self._hooks is not None:
                process, process_batch = self._hooks.process(process), self._hooks.process_batch(process_batch)
                thread = NO_THREAD  # no emit is a plain one any more

        self.give(plain_emit if plain else emit, emit_batch)

        def stop() -> None:
            inputs.clear()

        self._run, self._stop_run = run, stop
        return bind

    def hurry(self) -> None:
        """No more tuples in this turn."""
        self._ends_turn = True
        self._stop_run()

    def begun(self) -> None:
        """As the bolt is now, and with its hooks."""
        if self.env.context.hooks:
            self._hooks = self.acking.hooks = Hooks(self.env.context.hooks, self.env.task.task, self.clock)
        self._bind()

    # --- the loop ---------------------------------------------------------------------------------------------

    @property
    def waits_for_room(self) -> bool:
        """With held output, a bolt takes no more input."""
        return self.env.output.held

    @property
    def busy(self) -> bool:
        """Whether a batch is half done, or a flush is due."""
        return self._batch is not None or bool(self._waiting)

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """Batches and markers wait in order until the component is initialised."""
        if header.kind in (ROWS, MARKER):
            self._waiting.append((header, frames))
            self._take()

    def _take(self) -> None:
        """The next batch, if the former one is done; markers on the way to it."""
        while self._waiting and self._batch is None and self.initialized:
            header, frames = self._waiting.popleft()
            if header.kind == MARKER:
                if self.marked(header):
                    self._quiet()
            else:
                self._open(header, frames)

    def _open(self, header: Header, frames: Sequence[bytes]) -> None:
        self.env.output.taken(header, sum(map(len, frames)))
        self.markers.data(header.source)
        arrived = self.clock()
        try:
            batch = self._read(header, frames)
        except ProtocolError as error:
            self._unreadable(header, frames, error)
            return
        self._batch = batch
        batch.arrived = arrived
        self._next_row = 0
        self._anchoring.begin(batch, self.outlet.buffers.values())
        if self.env.black_box is not None:
            self.env.black_box.begin(batch)

    def _read(self, header: Header, frames: Sequence[bytes]) -> InputBatch:
        source = self.sources.get(header.source)
        streams = () if source is None else self.env.plan.logical[source].streams
        if source is None or header.stream >= len(streams):
            raise ProtocolError("MALFORMED_ROWS", f"this task reads no stream {header.stream} of task {header.source}")
        try:
            return self.read(header, frames, source, streams[header.stream])
        except ProtocolError as error:
            where = f"from task {header.source} of {source}, stream {streams[header.stream].name}"
            raise ProtocolError(error.code, f"{where}: {error.reason}", hint=error.hint) from error

    def _unreadable(self, header: Header, frames: Sequence[bytes], error: ProtocolError) -> None:
        """Nobody's bytes end this task: their trees fail, and the spout decides."""
        self.error = f"{self.env.task.name}: {error.message}; the rows fail"
        self.bolt.logger.error("%s%s", self.error, f"; {error.hint}" if error.hint else "")
        self.instruments.malformed += 1
        self.instruments.failed.value += header.rows
        if header.ids:
            self.acking.fail_unread(column(frames[-2]))

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """What has arrived; raises ProtocolError for bytes that are not rows of the stream."""
        if header.codec != ARROW:
            rows: Sequence[tuple[Any, ...]] = self.codec.decode_headed(header.head, frames[0], len(stream.fields))
        else:
            try:
                rows = rows_of(decode_columns(frames[0], stream))
            except EncodingError as error:
                raise UserError(f"{self.env.task.name}, stream {stream.name} of {source}: {error.message}") from error
        return InputBatch(header, frames, rows, source, stream)

    def advance(self, now: float) -> float:
        """A chunk of the current batch, ticks, flushes, markers."""
        if not self.initialized:
            if self.active:
                self.set_active(active=True)
            return now + 1.0
        if self._next_tick is math.inf and self.settings.tick:
            self._next_tick = now + self.settings.tick
        if self.env.output.held:
            return min(now + 0.05, self.flush(now))
        self._take()
        if self._batch is not None:
            self._process(self._batch)
            now = self.clock()
        if now >= self._next_tick and not self.markers.resting and not self.markers.closed:
            self._tick(now)
        # A full batch leaves at once: its reader, or the spouts that wait for these acks, may have nothing else.
        idle = not self.busy and self.env.inbox.empty
        full = max(self._processed, self.outlet.waiting) >= self.settings.batch_rows
        if full and not idle and now < self._acks_left + AFTER:
            full = False  # spouts have: these acks can wait for the next batch's
            if self.outlet.waiting >= self.settings.batch_rows:
                began, now = now, self.send_rows()
                self._flushing.flushed(began, now)
        due = self.flush(now, idle=idle, force=full)
        self.report()
        if self.busy:
            return now
        return min(due, self._next_tick if not self.markers.resting else math.inf, now + 1.0)

    def _process(self, batch: InputBatch) -> None:
        """As many tuples as fit into a slice of time."""
        rows = batch.rows
        start = self._next_row
        wanted = len(rows) - start if self._whole_batches else int(self.settings.slice_ms / 2000 / self._per_row) + 1
        end = min(len(rows), start + wanted)
        began = self.clock()
        end = self._process_rows(batch, start, end)
        if self.env.black_box is not None:
            self.env.black_box.clear()  # whoever dies between two slices was inside none
        self._done(batch, start, end, self.clock() - began)

    def _done(self, batch: InputBatch, start: int, end: int, elapsed: float) -> None:
        """Rows were processed, in so many seconds."""
        count = end - start
        if count:
            per_row = elapsed / count
            self._per_row += 0.3 * (per_row - self._per_row)
            self.instruments.execute.observe(per_row, count)
            self.instruments.executed(batch.component, batch.stream).value += count
        if self.bolt.auto_ack:
            self.acking.ack_processed(batch, start, end)
        self._next_row = end
        self._processed += count
        if end == len(batch.rows):
            self._batch = None
            busy = self.clock() - batch.arrived
            self.instruments.busy.value += busy
            self.env.window.consumed(len(batch.rows), batch.size, busy)

    def _process_rows(self, batch: InputBatch, start: int, end: int) -> int:
        """Returns where it has got to."""
        self._ends_turn = False
        while start < end and not self._ends_turn:
            try:
                return self._run(batch, start, end)
            except Exception as error:
                if self._whole_batches:
                    self.raised(batch, start, end, error)
                    return end
                failed = self._raised_at
                self.raised(batch, failed, failed + 1, error)
                start = failed + 1
        return start

    def raised(self, batch: InputBatch, start: int, end: int, error: Exception) -> None:
        """An exception of ``process``: fails its tuples, or ends the process, as ``auto_fail`` says."""
        origin = f"tuple {batch.id_of(start)} of {batch.component}, stream {batch.stream}"
        if not isinstance(error, FailedException):
            self.instruments.exception(error)
            text = printable("".join(traceback.format_exception(error)).rstrip(), most=20_000)
            self.bolt.logger.error("%s failed on %s:\n%s", self.env.task.name, origin, text)
            what = f"{type(error).__name__}: {printable(error)} at {place_of(error)}"
            self.error = f"{self.env.task.name} raised {what} ({origin})"
        if not self.bolt.auto_fail and not isinstance(error, FailedException):
            raise error
        self.acking.fail_rest(batch, start, end)

    def _tick(self, now: float) -> None:
        self._next_tick = now + (self.settings.tick or math.inf)
        self._ticks += 1
        with self.user_code:
            self.bolt.process_tick(Tuple((self.settings.tick,), self._ticks, TickBatch()))

    # --- markers ----------------------------------------------------------------------------------------------

    def _quiet(self) -> None:
        """After a marker: flush and rest, or end."""
        if self.markers.may_end:
            self.markers.resting, self.ending = False, True
            with self.user_code:
                self.bolt.end_of_input()
            self.send()
            self.end()
            self.report()
        elif self.markers.may_rest:
            with self.user_code:
                self.bolt.flush()
            self.send()
            self.rest()
            self.report()
