"""How a bolt with windows is called: once for each batch, of rows or of columns."""

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


class WindowCalls(BatchCalls):
    """``process_batch``, but for columns that its fold can read."""

    def __init__(self, parts: Parts, rows: BoltRows, windowing: Windowing) -> None:
        super().__init__(parts, rows)
        self._windowing = windowing
        self._hooked = False
        self._present: TupleBatch | None = None

    def begun(self, hooks: Hooks | None) -> None:
        """Hooks see tuple by tuple."""
        super().begun(hooks)
        self._hooked = hooks is not None

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Columns stay as they are."""
        if header.codec == ARROW and self._windowing.reads_columns and not self._hooked:
            return ColumnInput(header, frames, ColumnRows(decode_columns(frames[0], stream)), source, stream)
        return super().read(header, frames, source, stream)

    def blamed(self, start: int, end: int) -> range:
        """The row that its fold cannot add, where all go back anyway: else nobody knows what of the batch was added."""
        if self._env.snapshots is not None and self._present is not None:
            with self._user_code:
                place = self._windowing.culprit(self._present)
            if place is not None:
                return range(start + place, start + place + 1)
        return super().blamed(start, end)

    def _given(self, batch: InputBatch, start: int, end: int) -> Any:
        """Columns arrive whole."""
        if isinstance(batch, ColumnInput):
            self._present = None
            return batch.columns
        self._present = super()._given(batch, start, end)
        return self._present
