"""What a spout task emits, and how it leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import get_ident
from typing import Any

from ardea.collectors import TupIds
from ardea.errors import UserError
from ardea.heron_instance.asking import Asking
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import NO_THREAD
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.open_rows import OpenRows
from ardea.heron_instance.output import Part
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.sendable import own
from ardea.heron_instance.settling import Settling
from ardea.heron_instance.spout_trees import SpoutTrees
from ardea.heron_instance.trees import Ids, Row, TrackedColumns, ids_of, plain
from ardea.heron_instance.watermarks import SpoutTime
from ardea.protocol.arrow import rows_of


class SpoutRows:
    """Of one task.

    A mark in a stream's buffer is the author's message id (None: untracked), or the :class:`Row` that is sent again.
    """

    def __init__(self, parts: Parts, open_rows: OpenRows, settling: Settling, asking: Asking) -> None:
        self._env = parts.env
        self._task_output = parts.task_output
        self._sending = parts.sending
        self._user_code = parts.user_code
        self._reporter = parts.reporter
        self._open = open_rows
        self._settling = settling
        self._asking = asking
        self._trees = SpoutTrees(parts, open_rows, settling)
        self.hooks: Hooks | None = None
        self._future = parts.reporter.time.future if isinstance(parts.reporter.time, SpoutTime) else None

    # --- emits ------------------------------------------------------------------------------------------------

    def plain_emit(self, only: StreamBuffer) -> tuple[Callable[..., list[int] | None], Callable[[], None]]:
        """An emit that appends to the buffer of the only stream, and what sends all of its calls past the hooks."""
        task_output, rows = self._task_output, only.rows.values
        append, mark = rows.append, only.rows.marks.append
        thread = get_ident()

        def emit(
            values: Sequence[Any],
            tup_id: Any = None,
            stream: str = "default",
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if stream != "default" or direct_task is not None or need_task_ids or get_ident() != thread:
                return self.emit(values, tup_id, stream, direct_task, need_task_ids)
            append(values if type(values) is tuple else tuple(values) if type(values) is list else own(values))
            mark(tup_id)
            if len(rows) >= task_output.row_limit:
                self.overflow()
            return None

        def none_is_plain() -> None:
            nonlocal thread
            thread = NO_THREAD

        return emit, none_is_plain

    def emit(
        self,
        values: Sequence[Any],
        tup_id: Any = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """The emits that are not the plain one."""
        self._user_code.check_thread()
        task_output, values = self._task_output, own(values)
        if self._future is not None and direct_task is None:
            stream = self._future.stream(stream, values)
        with self._user_code.lock:
            buffer, chosen = task_output.buffer(stream), need_task_ids or self.hooks is not None
            tasks = task_output.emit(buffer, values, tup_id, direct_task, chosen=chosen)
            if len(buffer.rows.values) >= task_output.row_limit:
                self.overflow()
        if self.hooks is not None:
            self.hooks.emitted(values, stream, list(tasks))
        return list(tasks) if need_task_ids else None

    def emit_part(self, part: Part, tup_ids: Sequence[Any], stream: str) -> Mapping[int, int]:
        """Many rows, which hooks do not see; how many each task gets, if that is wanted."""
        if self._future is None:
            return self._emit_part(part, tup_ids, stream)
        counts: Counter[int] = Counter()
        for name, place in self._future.runs(stream, part.rows):
            some = replace(part, rows=part.rows[place], first=part.first + (place.start or 0))
            counts.update(self._emit_part(some, tup_ids[place], name))
        return counts

    def _emit_part(self, part: Part, tup_ids: Sequence[Any], stream: str) -> Mapping[int, int]:
        with self._user_code.lock:
            buffer = self._task_output.buffer(stream)
            counts = self._task_output.emit_part(buffer, part, tup_ids)
            if len(buffer.rows.values) >= self._task_output.row_limit:
                self.overflow()
            return counts

    def emit_batch(self, batch: Any, tup_ids: TupIds | None, stream: str) -> None:
        """Columns leave at once, after the rows emitted before."""
        self._user_code.check_thread()
        ids = None if tup_ids is None else ids_of(tup_ids)
        if self._future is None:
            self._emit_batch(batch, ids, stream)
            return
        with self._user_code.lock:
            batch = self._task_output.checked_columns(stream, batch)
        for name, some, some_ids in self._future.batches(stream, batch, ids):
            self._emit_batch(some, some_ids, name)

    def _emit_batch(self, batch: Any, ids: Ids | None, stream: str) -> None:
        with self._user_code.lock:
            self.absorb()
            batch = self._task_output.checked_columns(stream, batch)
            columns = self._tracked_columns(batch, ids, stream)
            if self.hooks is None:
                self.send()
                if not self._task_output.waiting:
                    self._task_output.emit_columns(stream, batch, columns, self.overflow)
                    return
        # Hooks see one row at a time; or an author's fail() has emitted, and columns would take the place of its rows.
        each_id = [None] * batch.num_rows if columns is None else plain(columns.ids)
        for values, tup_id in zip(rows_of(batch), each_id, strict=True):
            self.emit(values, tup_id, stream)

    def _tracked_columns(self, batch: Any, ids: Ids | None, stream: str) -> TrackedColumns | None:
        if ids is not None and len(ids) != batch.num_rows:
            raise UserError(f"{self._env.task.name}: {len(ids)} tup_ids for a batch of {batch.num_rows} rows")
        return None if ids is None else TrackedColumns(ids, batch, stream)

    def emit_again(self, now: float) -> float:
        """Rows whose back-off is over; returns when to look again."""
        replays, task_output = self._open.replays, self._task_output
        while replays.next_due <= now:
            if self._open.admitted(now) <= task_output.waiting:
                return self._asking.full(now)
            row = replays.take()
            self._trees.replaying = True
            self._reporter.markers.resting = False
            if isinstance(row, TrackedColumns):
                self.send()
                task_output.emit_columns(row.stream, row.batch, row, self.send)
                continue
            self._emit_again(row)
            if task_output.waiting >= self._env.settings.batch_rows:
                self.send()
        return replays.next_due

    def _emit_again(self, row: Row) -> None:
        task_output = self._task_output
        buffer = task_output.buffer(row.stream)
        if row.direct_task is None:
            buffer.rows.values.append(row.values)
            buffer.rows.marks.append(row)
        elif task_output.reads(row.stream, row.direct_task):
            task_output.emit_direct(buffer, row.values, row.direct_task, row)
        else:
            called = self._settling.broken_rows.called(row.tup_id)
            self._reporter.error = f"{self._env.task.name}: {called} was for task {row.direct_task}, which is gone"
            self._settling.give_up(1)

    # --- output -----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Rows emitted, and those that ``ack`` has not heard of."""
        return self._task_output.waiting > 0 or bool(self._settling.left or self._trees.refused_ids)

    def send(self) -> None:
        """The author hears of rows that could not be sent."""
        self._send_rows()
        self._trees.replaying = False
        while self._trees.refused_ids:
            self._settling.tell_failed(self._trees.refused_ids.pop(0))

    def _send_rows(self, part: StreamBuffer | None = None) -> None:
        """Data cancels a rest."""
        buffers, runs = self._task_output.on_its_way(part)
        self._env.observer.leaving(buffers, runs)
        if self._env.tracing is not None:
            self._env.tracing.flushes()
        if isinstance(self._reporter.time, SpoutTime):
            self._reporter.time.emits(buffers)
        if self._task_output.waiting:
            self._reporter.markers.resting = False
            self._asking.emitted()
            if self._open.acked_at_once:
                self._settling.take_ids(self._task_output.buffers.values() if part is None else (part,))
        self.flush_rows(part)

    def flush_rows(self, part: StreamBuffer | None = None) -> None:
        """What was emitted after the end is given up."""
        if dropped := self._sending.flush_rows(self._trees, part):
            self._settling.give_up(dropped)

    def overflow(self) -> None:
        """What leaves inside a call is pending: that has to be looked at before the next call."""
        self._sending.overflow(self)
        self._asking.stop()

    # --- in the middle of a call ------------------------------------------------------------------------------

    def send_inside(self) -> bool:
        """Rows whose marks are there."""
        waiting, only, left = self._task_output.waiting, self._sending.only, self._settling.left
        if not waiting or waiting > self._open.trees.room or not self._sending.may_send_inside:
            return False
        if only is None:
            self._send_rows()
            return True
        known = len(left)
        try:
            self._send_rows(only.part(len(only.rows.marks)))
        except BaseException:
            del left[known:]  # these rows wait, and so do their ids
            raise
        return True

    def absorb(self) -> None:
        """Rows that have left in the middle of a call wait no more."""
        only = self._sending.only
        if only is not None and only.rows.gone:
            only.rows.cut()
