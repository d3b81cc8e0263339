"""The executor of a bolt that reads columns: one call a batch, and nothing that looks at a single row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ardea.component import overrides
from ardea.errors import UserError
from ardea.heron_instance.bolt import BoltExecutor
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.inlet import UNANCHORED, WHOLE_BATCH, ColumnInput, InputBatch, decode_columns
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows, Misfit, columns_of, fitted, type_of
from ardea.protocol.wire_pb2 import ARROW, Header
from ardea.tuples import Tuple

_MISFITS_LOGGED = 5


class ColumnBoltExecutor(BoltExecutor):
    """Runs one bolt task."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        try:
            self._types = {name: type_of(written) for name, written in self.bolt.column_types.items()}
        except ValueError as error:
            raise UserError(f"{env.task.name}: column_types: {error}") from error

    def _install(self) -> Callable[[], None]:
        """Gives the bolt its emits, which are anchored to the batch inside ``process_columns`` only."""
        current = UNANCHORED

        def emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            mark = current if self.bolt.auto_anchor else UNANCHORED
            return self._emit(values, stream, mark, anchors, direct_task, need_task_ids)

        def emit_batch(batch: Any, stream: str, anchors: Any) -> None:
            self.emit_columns(batch, stream, anchors, current)

        def run(batch: ColumnInput) -> None:
            nonlocal current
            current = WHOLE_BATCH
            try:
                with self.user_code:
                    if self._hooks is None:
                        self.bolt.process_columns(batch.columns)
                    else:
                        tuples = [Tuple(values, index, batch) for index, values in enumerate(batch.rows)]
                        self._hooks.process_batch(lambda _: self.bolt.process_columns(batch.columns))(tuples)
            finally:
                current = UNANCHORED

        self.give(emit, emit_batch)
        self._run_columns = run
        return lambda: None  # all of it is looked up in each call

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Columns of the declared types; rows that do not fit have failed already."""
        if header.codec == ARROW:
            columns, misfits = fitted(decode_columns(frames[0], stream), stream.fields, self._types)
        else:
            rows = self.codec.decode_headed(header.head, frames[0], len(stream.fields))
            columns, misfits = columns_of(rows, stream.fields, self._types)
        batch = ColumnInput(header, frames, ColumnRows(columns), source, stream)
        return self._without(batch, misfits) if misfits else batch

    def _without(self, batch: ColumnInput, misfits: Sequence[Misfit]) -> ColumnInput:
        where = f"stream {batch.stream} of {batch.component}"
        for misfit in misfits[:_MISFITS_LOGGED]:
            self.error = f"{self.env.task.name}: {where}, field {misfit.field}: {misfit.reason}; the row fails"
            self.bolt.logger.error("%s (tuple %s); declare column_types", self.error, batch.id_of(misfit.row))
        if len(misfits) > _MISFITS_LOGGED:
            self.bolt.logger.error("%s: %d more rows of this batch fail so", where, len(misfits) - _MISFITS_LOGGED)
        bad = np.array([misfit.row for misfit in misfits], dtype=np.intp)
        self.acking.fail_batch(batch.columns, bad)
        return batch.kept(np.delete(np.arange(len(batch.rows), dtype=np.intp), bad))

    def _process(self, batch: InputBatch) -> None:
        """All of it at once."""
        began = self.clock()
        count = len(batch.rows)
        if isinstance(batch, ColumnInput) and count:
            try:
                self._run_columns(batch)
            except Exception as error:
                self.raised(batch, 0, count, error)
        self._done(batch, 0, count, self.clock() - began)


def reads_columns(cls: type) -> bool:
    """Whether an author's bolt is written for columns."""
    return overrides(cls, "process_columns")
