"""How a bolt with windows, or ahead of them, is called: once for each batch, of rows or of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import ColumnInput, InputBatch, decode_columns
from ardea.heron_instance.row_calls import BatchCalls
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.windowing import Windowing
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows
from ardea.protocol.wire_pb2 import ARROW, Header
from ardea.tuples import TupleBatch


class EitherCalls(BatchCalls):
    """``process_batch``, which gets columns where the bolt can read them; ``reads``: whether it can."""

    def __init__(self, parts: Parts, rows: BoltRows, *, reads: bool) -> None:
        super().__init__(parts, rows)
        self._reads, self._hooked = reads, False

    def begun(self, hooks: Hooks | None) -> None:
        """Hooks see tuple by tuple."""
        super().begun(hooks)
        self._hooked = hooks is not None

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Columns stay as they are."""
        if header.codec == ARROW and self._reads and not self._hooked:
            return ColumnInput(header, frames, ColumnRows(decode_columns(frames[0], stream)), source, stream)
        return super().read(header, frames, source, stream)

    def _given(self, batch: InputBatch, start: int, end: int) -> Any:
        """Columns arrive whole."""
        return batch.columns if isinstance(batch, ColumnInput) else super()._given(batch, start, end)


class WindowCalls(EitherCalls):
    """Rows go to windows."""

    def __init__(self, parts: Parts, rows: BoltRows, windowing: Windowing) -> None:
        super().__init__(parts, rows, reads=windowing.reads_columns)
        self._windowing = windowing
        self._present: TupleBatch | None = None

    def blamed(self, start: int, end: int) -> range:
        """The row that its fold cannot add, where all go back anyway: else nobody knows what of the batch was added."""
        if self._env.snapshots is not None and self._present is not None:
            with self._user_code:
                place = self._windowing.culprit(self._present)
            if place is not None:
                return range(start + place, start + place + 1)
        return super().blamed(start, end)

    def _given(self, batch: InputBatch, start: int, end: int) -> Any:
        given = super()._given(batch, start, end)
        self._present = given if isinstance(given, TupleBatch) else None
        return given
