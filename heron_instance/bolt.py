"""The bolt executor: takes batches, calls ``process`` for each tuple, sends emits and acks together."""

from __future__ import annotations

import math
import traceback
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from threading import get_ident
from typing import Any, cast

import numpy as np

from ardea.component import Bolt, install, overrides
from ardea.errors import EncodingError, FailedException, ProtocolError, UserError
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import decode_batch, rows_of
from ardea.protocol.ids import NO_IDS, by_task, distinct, fold
from ardea.protocol.wire_pb2 import ACKS, ARROW, MARKER, ROWS, Header
from ardea.tuples import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_FIELDS, TICK_STREAM, Tuple
from heron_instance.anchoring import UNANCHORED, WHOLE_BATCH, Anchoring, Anchors, one
from heron_instance.executor import Environment, Executor
from heron_instance.hooks import Hooks
from heron_instance.inlet import InputBatch, Int
from heron_instance.outlet import OutMessage, StreamBuffer
from heron_instance.trees import Trees


class TickBatch:
    """Where a tick tuple says it comes from."""

    component, stream, task, fields = SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, TICK_FIELDS

    @staticmethod
    def id_of(index: int) -> str:
        """Ticks have a number only."""
        return f"tick:{index}"


class BoltExecutor(Executor):
    """Runs one bolt task."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.bolt = cast("Bolt", env.component)
        self._whole_batches = overrides(type(self.bolt), "process_batch")
        self._batch: InputBatch | None = None
        self._next_row = 0
        self._processed = 0  # rows since the last flush
        self._per_row = 1e-3
        self._waiting: deque[tuple[Header, Sequence[bytes]]] = deque()
        self._anchoring = Anchoring(always_mixed=self._whole_batches)
        self._acked: list[tuple[InputBatch, Int | None]] = []
        self._explicit: list[tuple[InputBatch, int]] = []
        self._failed: dict[tuple[InputBatch, int], None] = {}  # in order, each once
        self._next_tick = math.inf
        self._ticks = 0
        self._hooks: Hooks | None = None
        self._raised_at = 0
        self._run = self._install()

    # --- user code --------------------------------------------------------------------------------------------

    def _install(self, hooks: Hooks | None = None) -> Callable[[Sequence[Tuple], int], None]:
        """Gives the bolt its emit, and returns the loop that calls ``process``; both share the current index."""
        current = UNANCHORED
        process = self.bolt.process if hooks is None else hooks.process(self.bolt.process)
        process_batch = self.bolt.process_batch if hooks is None else hooks.process_batch(self.bolt.process_batch)
        auto_anchor = self.bolt.auto_anchor
        outlet = self.outlet
        rows, _, plain = self.plain_buffer()
        append = rows.append
        thread = get_ident()

        def emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            mark = current if auto_anchor else UNANCHORED
            return self._emit(values, stream, mark, anchors, direct_task, need_task_ids)

        def plain_emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if anchors is not None or direct_task is not None or need_task_ids or stream != "default":
                return emit(values, stream, anchors, direct_task, need_task_ids)
            if get_ident() != thread:
                self.check_thread()
            append(values)
            if len(rows) >= outlet.row_limit:
                self.overflow()
            return None

        def run(tuples: Sequence[Tuple], start: int) -> None:
            nonlocal current
            marked = self._anchoring.run(len(rows), WHOLE_BATCH if whole else start) if plain and auto_anchor else None
            try:
                if whole:
                    current = WHOLE_BATCH
                    process_batch(tuples)
                elif marked is not None:
                    ended = marked.ends.append
                    for current, tup in enumerate(tuples, start):  # noqa: B007 -- emit reads it
                        process(tup)
                        ended(len(rows))
                else:
                    for current, tup in enumerate(tuples, start):  # noqa: B007 -- emit reads it
                        process(tup)
            except BaseException:
                self._raised_at = current
                raise
            finally:
                current = UNANCHORED
                if marked is not None:
                    self._anchoring.close(marked, len(rows))

        whole = self._whole_batches
        if self.env.black_box is not None:
            enter, inside = self.env.black_box.enter, process

            def process(tup: Tuple) -> None:
                enter(current)
                inside(tup)

        given = plain_emit if plain else emit
        self.give(given if hooks is None else hooks.emit(given))
        return run

    def give(self, emit: Callable[..., list[int] | None]) -> None:
        """Puts the bolt to work with this emit; a class with an ``emit`` of its own reaches it through the base's."""
        install(self.bolt, self.env.task.component, _Collector(emit, self.emit_rows, self.ack, self.fail))
        if not overrides(type(self.bolt), "emit"):
            self.bolt.emit = emit  # type: ignore[method-assign]

    def hooked(self) -> None:
        """From now on with hooks."""
        self._hooks = Hooks(self.env.context.hooks, self.env.task.task, self.clock)
        self._run = self._install(self._hooks)

    def _emit(
        self,
        values: Sequence[Any],
        stream: str,
        current: int,
        anchors: Sequence[Tuple] | None,
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """The emits that are not the plain one."""
        self.check_thread()
        mark: int | Anchors = current if anchors is None else self._anchors(anchors)
        if isinstance(mark, tuple):
            self._anchoring.mixed = True
        buffer = self.outlet.buffer(stream)
        self._anchoring.mark(buffer)
        tasks: list[int] | None = None
        if direct_task is not None:
            tasks = list(self.outlet.emit_direct(buffer, values, direct_task, mark))
        else:
            self.outlet.check(buffer)
            if need_task_ids:
                tasks = list(self.outlet.emit_chosen(buffer, values, mark))
            else:
                buffer.rows.append(values)
                buffer.marks.append(mark)
        if len(buffer.rows) >= self.outlet.row_limit:
            self.overflow()
        return tasks if need_task_ids else None

    def emit_rows(self, rows: Sequence[Sequence[Any]], stream: str) -> Mapping[int, int]:
        """Untracked rows, routed at once; see :meth:`ardea.Bolt.emit_rows`."""
        self.check_thread()
        if self._hooks is not None:  # which are told row by row
            emit = self.bolt.emit
            return Counter(t for row in rows for t in emit(row, stream, anchors=(), need_task_ids=True) or ())
        buffer = self.outlet.buffer(stream)
        self.outlet.check(buffer)
        self._anchoring.mark(buffer)
        counts = self.outlet.emit_routed(buffer, rows, UNANCHORED)
        if len(buffer.rows) >= self.outlet.row_limit:
            self.overflow()
        return counts

    def _anchors(self, anchors: Sequence[Tuple]) -> int | Anchors:
        for tup in anchors:
            if self._settled(tup._batch, tup._index):
                raise UserError(
                    f"{self.env.task.name}: emit anchored to tuple {tup.id} of {tup.component}, "
                    "which is acked or failed already",
                    hint="set auto_ack = False and ack it after the emit",
                )
        if len(anchors) == 1 and anchors[0]._batch is self._batch:
            return anchors[0]._index
        return tuple(t for t in anchors if isinstance(t._batch, InputBatch)) or UNANCHORED

    # --- acks -------------------------------------------------------------------------------------------------

    def ack(self, tup: Tuple) -> None:
        """An explicit ack; a second one is ignored and counted."""
        self.check_thread()
        batch, index = tup._batch, tup._index
        if not isinstance(batch, InputBatch):
            return
        if self._settled(batch, index):
            self.instruments.double_acks.value += 1
            return
        batch.settled.add(index)
        self._explicit.append((batch, index))
        self.instruments.acked.value += 1
        if self._hooks is not None:
            self._hooks.acked(tup, batch.arrived)

    def fail(self, tup: Tuple) -> None:
        """An explicit fail; of a tuple already settled it is ignored and counted."""
        self.check_thread()
        batch, index = tup._batch, tup._index
        if not isinstance(batch, InputBatch):
            return
        if self._settled(batch, index):
            self.instruments.double_acks.value += 1
            return
        self._fail(batch, index)

    def _fail(self, batch: InputBatch, index: int) -> None:
        batch.settled.add(index)
        self._failed[batch, index] = None
        self.instruments.failed.value += 1
        if self._hooks is not None:
            self._hooks.failed(Tuple(batch.rows[index], index, batch), batch.arrived)

    @staticmethod
    def _settled(batch: Any, index: int) -> bool:
        return isinstance(batch, InputBatch) and (index < batch.acked_below or index in batch.settled)

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
        source = self.sources[header.source]
        self.markers.data(header.source)
        stream = self.env.plan.logical[source].streams[header.stream]
        arrived = self.clock()
        error: ProtocolError | None = None
        try:
            rows = self._decode(header, frames[0], stream)
        except ProtocolError as malformed:
            error, rows = malformed, [()] * header.rows
        batch = self._batch = InputBatch(header, frames, rows, source, stream)
        batch.arrived = arrived
        self._next_row = 0
        if error is not None:
            for index in range(len(rows)):
                self._fail(batch, index)
            self._next_row = len(rows)
            self.refuse(error, f"from {source}-{header.source}")
        self._anchoring.begin(batch, self.outlet.buffers.values())
        if self.env.black_box is not None:
            self.env.black_box.begin(batch)

    def _decode(self, header: Header, values: bytes, stream: StreamPlan) -> list[tuple[Any, ...]]:
        """Raises ProtocolError for bytes that are not rows of the stream."""
        fields = len(stream.fields)
        if header.codec != ARROW:
            return self.codec.decode(values, fields)
        batch = decode_batch(values)
        if batch.num_columns != fields:
            raise ProtocolError("MALFORMED_ROWS", f"rows of stream {stream.name} do not have {fields} values")
        return rows_of(batch)

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
        full = max(self._processed, self.outlet.waiting) >= self.settings.batch_rows
        due = self.flush(now, force=full)
        self.report()
        if self._batch is not None or self._waiting:
            return now
        return min(due, self._next_tick if not self.markers.resting else math.inf, now + 1.0)

    def _process(self, batch: InputBatch) -> None:
        """As many tuples as fit into a slice of time."""
        rows = batch.rows
        start = self._next_row
        wanted = len(rows) - start if self._whole_batches else int(self.settings.slice_ms / 2000 / self._per_row) + 1
        end = min(len(rows), start + wanted)
        tuples = list(map(Tuple, rows[start:end], range(start, end), repeat(batch)))
        began = self.clock()
        self._process_tuples(batch, tuples, start)
        if self.env.black_box is not None:
            self.env.black_box.clear()  # whoever dies between two slices was inside none
        ended = self.clock()
        elapsed = ended - began
        count = end - start
        if count:
            per_row = elapsed / count
            self._per_row += 0.3 * (per_row - self._per_row)
            self.instruments.execute.observe(per_row, count)
            self.instruments.executed(batch.component, batch.stream).value += count
        self._settle(batch, start, end)
        self._next_row = end
        self._processed += end - start
        if end == len(rows):
            self._batch = None
            busy = ended - batch.arrived
            self.instruments.busy.value += busy
            size = batch.size
            self.env.window.consumed(len(rows), size, busy)

    def _process_tuples(self, batch: InputBatch, tuples: list[Tuple], start: int) -> None:
        done = 0
        while done < len(tuples):
            try:
                self._run(tuples[done:] if done else tuples, start + done)
                return
            except Exception as error:
                if self._whole_batches:
                    self._raised(batch, [t._index for t in tuples], error)
                    return
                failed = self._raised_at
                self._raised(batch, [failed], error)
                done = failed - start + 1

    def _raised(self, batch: InputBatch, indexes: list[int], error: Exception) -> None:
        """An exception of ``process``: fails the tuple, or ends the process, as ``auto_fail`` says."""
        origin = f"tuple {batch.id_of(indexes[0])} of {batch.component}, stream {batch.stream}"
        if not isinstance(error, FailedException):
            self.instruments.exception(error)
            text = "".join(traceback.format_exception(error)).rstrip()
            self.bolt.logger.error("%s failed on %s:\n%s", self.env.task.name, origin, text)
            frame = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(frame.filename).name}:{frame.lineno}"
            self.error = f"{self.env.task.name} raised {type(error).__name__}: {error} at {where} ({origin})"
        if not self.bolt.auto_fail and not isinstance(error, FailedException):
            raise error
        for index in indexes:
            if not self._settled(batch, index):
                self._fail(batch, index)

    def _settle(self, batch: InputBatch, start: int, end: int) -> None:
        """Acks what was processed, unless the author does so."""
        if not self.bolt.auto_ack:
            return
        if batch.settled:
            rows = np.array([i for i in range(start, end) if i not in batch.settled], dtype=np.intp)
        elif start == 0 and end == len(batch.rows):
            rows = None
        else:
            rows = np.arange(start, end, dtype=np.intp)
        batch.acked_below = end
        self.instruments.acked.value += end - start if rows is None else len(rows)
        if self._hooks is not None:
            for index in range(start, end) if rows is None else rows.tolist():
                self._hooks.acked(Tuple(batch.rows[index], index, batch), batch.arrived)
        if batch.tracked:
            self._acked.append((batch, rows))

    def _tick(self, now: float) -> None:
        self._next_tick = now + (self.settings.tick or math.inf)
        self._ticks += 1
        self.bolt.process_tick(Tuple((self.settings.tick,), self._ticks, TickBatch()))

    # --- markers ----------------------------------------------------------------------------------------------

    def _quiet(self) -> None:
        """After a marker: flush and rest, or end."""
        if self.markers.may_end:
            self.markers.resting = False
            self.bolt.end_of_input()
            self.send()
            self.end()
            self.report()
        elif self.markers.may_rest:
            self.bolt.flush()
            self.send()
            self.rest()
            self.report()

    # --- output -----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Rows, acks or fails."""
        return bool(self._acked or self._explicit or self._failed or self.outlet.waiting)

    def send(self) -> None:
        """Rows first: they add edges to what the acks say.

        What a submitted function emits cancels the task's rest, which begins again behind it.
        """
        rests_again = self.markers.resting and self.outlet.waiting > 0
        self._processed = 0
        self.outlet.flush(self)
        if rests_again:
            self.rest()
        self._anchoring.restart(self._batch, self.outlet.buffers.values())
        for batch, index in self._explicit:
            self._acked.append((batch, one(index)))
        columns = [batch.acks(rows) for batch, rows in self._acked if batch.tracked]
        roots, xors = NO_IDS, NO_IDS
        if columns:
            roots, xors = fold(np.concatenate([c[0] for c in columns]), np.concatenate([c[1] for c in columns]))
        failed = NO_IDS
        if self._failed:
            parts = [b.roots_of(one(i))[0] for b, i in self._failed if b.tracked]
            failed = distinct(np.sort(np.concatenate(parts))) if parts else NO_IDS
        self._acked.clear()
        self._explicit.clear()
        self._failed.clear()
        frames: dict[int, list[bytes]] = {}
        for spout, part in by_task(roots):
            frames[spout] = [roots[part].tobytes(), xors[part].tobytes(), b"", b""]
        for spout, part in by_task(failed):
            frames.setdefault(spout, [b"", b"", b"", b""])[2] = failed[part].tobytes()
        for spout, columns_of in frames.items():
            self._put(OutMessage(Header(kind=ACKS, target=spout), columns_of, 0, sum(map(len, columns_of))))

    # --- origins ----------------------------------------------------------------------------------------------

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:  # noqa: ARG002 -- a spout needs the size
        """The trees of the rows' anchors."""
        return self._anchoring.trees(buffer)

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """A bolt begins no trees."""

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """The new edges hang on the anchors."""
        self._anchoring.anchored(buffer, trees)

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """Fails the tuples that the row was anchored to, although acked: acks leave behind what was emitted before."""
        origin = "not anchored"
        for batch, index in self._anchoring.take_out(buffer, row):
            origin = f"while processing tuple {batch.id_of(index)} of {batch.component}"
            if (batch, index) not in self._failed:
                self._fail(batch, index)
        self.refuse(error, origin)


class _Collector:
    """What the base class's methods reach when the author overrides them."""

    def __init__(
        self,
        emit: Callable[..., Any],
        emit_rows: Callable[..., Mapping[int, int]],
        ack: Callable[[Tuple], None],
        fail: Callable[[Tuple], None],
    ) -> None:
        self.emit, self.emit_rows, self.ack, self.fail = emit, emit_rows, ack, fail
