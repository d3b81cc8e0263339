"""How a bolt that reads columns is called: once for each batch, and nothing looks at a single row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ardea.component import Bolt, overrides
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import UNANCHORED, WHOLE_BATCH, ColumnInput, InputBatch, decode_columns
from ardea.heron_instance.row_calls import look
from ardea.heron_instance.runner import Parts
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows, Misfit, columns_of, fitted, type_of
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ARROW, Header
from ardea.tuples import ColumnBatch, Tuple

_MISFITS_LOGGED = 5


class ColumnCalls:
    """``process_columns``; all of it is looked up in each call."""

    def __init__(self, parts: Parts, rows: BoltRows) -> None:
        self._env = parts.env
        self._bolt = cast("Bolt", parts.env.component)
        self._user_code = parts.user_code
        self._parts, self._reporter = parts, parts.reporter
        self._looked = False
        self._rows = rows
        self._codec = RowCodec(parts.env.settings.pickle)
        self._hooks: Hooks | None = None
        self._current = UNANCHORED
        try:
            self._types = {name: type_of(written) for name, written in self._bolt.column_types.items()}
        except ValueError as error:
            raise UserError(f"{parts.env.task.name}: column_types: {error}") from error

    def emit(
        self,
        values: Sequence[Any],
        stream: str = "default",
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """Anchored to the batch inside ``process_columns`` only."""
        return self._rows.emit(values, stream, self.mark, anchors, direct_task, need_task_ids)

    @property
    def mark(self) -> int:
        """See :class:`ardea.heron_instance.row_calls.Calls`, as for all of these."""
        return self._current if self._bolt.auto_anchor else UNANCHORED

    def emit_batch(self, batch: Any, stream: str, anchors: Any) -> None:
        """At once."""
        self._rows.emit_columns(batch, stream, anchors, self._current)

    def begun(self, hooks: Hooks | None) -> None:
        """Hooks see tuple by tuple."""
        self._hooks = hooks

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Columns of the declared types; rows that do not fit have failed already."""
        given: Sequence[tuple[Any, ...]]
        if header.codec == ARROW:
            given = ColumnRows(decode_columns(frames[0], stream))
            columns, misfits = fitted(given.batch, stream.fields, self._types)
        else:
            given = self._codec.decode_headed(header.head, frames[0], len(stream.fields))
            columns, misfits = columns_of(given, stream.fields, self._types)
        batch = ColumnInput(header, frames, ColumnRows(columns), source, stream)
        if not misfits:
            return batch
        try:
            given[0]
        except EncodingError:  # Python has no value for what came: dead letters and hooks have None in its place
            given = batch.rows
        self._fail(InputBatch(header, frames, given, source, stream), misfits)
        bad = [misfit.row for misfit in misfits]
        return batch.kept(np.delete(np.arange(len(batch.rows), dtype=np.intp), bad))

    def _fail(self, batch: InputBatch, misfits: Sequence[Misfit]) -> None:
        where, logger = f"stream {batch.stream} of {batch.component}", self._bolt.logger
        for misfit in misfits[:_MISFITS_LOGGED]:
            what = f"{self._env.task.name}: {where}, field {misfit.field}: {misfit.reason}; the row fails"
            self._reporter.error = what
            logger.error("%s (tuple %s); declare column_types", what, batch.id_of(misfit.row))
        if len(misfits) > _MISFITS_LOGGED:
            logger.error("%s: %d more rows of this batch fail so", where, len(misfits) - _MISFITS_LOGGED)
        for misfit in misfits:
            self._rows.acking.fail_row(batch, misfit.row)

    def run(self, batch: InputBatch, start: int, end: int) -> int:
        """One call."""
        assert isinstance(batch, ColumnInput)
        self._current = WHOLE_BATCH
        call: Callable[[ColumnBatch], None] = self._bolt.process_columns if self._looked else self._looking
        if batch.traces and self._env.tracing is not None:
            call = self._env.tracing.calling(call, batch, start, end)
        try:
            with self._user_code:
                if self._hooks is None:
                    call(batch.columns)
                else:
                    tuples = [Tuple(values, index, batch) for index, values in enumerate(batch.rows)]
                    self._hooks.process_batch(lambda _: call(batch.columns))(tuples)
        finally:
            self._current = UNANCHORED
        return end

    def _looking(self, columns: ColumnBatch) -> None:
        """``process_columns`` for the first time."""
        as_written: Callable[[ColumnBatch], object] = self._bolt.process_columns
        look(self._parts, "process_columns", as_written(columns))
        self._looked = True

    def blamed(self, start: int, end: int) -> range:
        """All."""
        return range(start, end)

    def stop(self) -> None:
        """There is one call only."""


def reads_columns(cls: type) -> bool:
    """Whether an author's bolt is written for columns."""
    return overrides(cls, "process_columns")
