"""What leaves a simulated task, and what a spout hears of its trees, goes into the record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.observer import Observer
from ardea.heron_instance.trees import Ids, Row, Trees, plain
from ardea.plan.physical import TaskPlan
from ardea.protocol.ids import U64
from ardea.testing.audit import Audit
from ardea.testing.record import Raised, Record


class RecordingObserver(Observer):
    """Of one task."""

    def __init__(self, task: TaskPlan, record: Record, audit: Audit | None, *, spout: bool) -> None:
        self._task = task
        self._spout = spout
        self._record = record
        self._audit = audit
        self._open: dict[int, Any] = {}  # root -> tup_id
        self._settled: set[int] = set()  # by itself: a verdict on one of these is late

    def raised(self, error: Exception, batch: InputBatch, rows: range) -> None:
        """Notes it, with the first of the rows."""
        record = self._record
        tup_id = record.tup_ids.get(batch.root_of(rows.start))
        record.exceptions.append(Raised(self._task.name, error, tuple(batch.shown(rows.start)), tup_id))

    def raised_beside(self, error: Exception) -> None:
        """Notes it."""
        self._record.errors.append((self._task.name, error))

    def leaving(self, buffers: Iterable[StreamBuffer], runs: Sequence[tuple[StreamBuffer, int]]) -> None:
        """Notes the rows."""
        self._record.left(self._task, buffers, runs, ids=self._spout)

    def opened(self, buffer: StreamBuffer, trees: Trees) -> None:
        """Notes which root stands for which row."""
        roots = trees.roots.tolist()
        marks = buffer.rows.marks if buffer.columns is None else plain(buffer.columns.origin.ids)
        ids = [m.tup_id if type(m) is Row else m for m in marks if m is not None]
        self._open.update(zip(roots, ids, strict=True))
        self._record.tup_ids.update(zip(roots, ids, strict=True))
        if self._audit is not None:
            self._audit.opened(self._task.name, roots)

    def judged(self, verdicts: Sequence[U64]) -> None:
        """Notes the verdicts, before the author hears of them."""
        record, component = self._record, self._task.component
        logs = (record.acked, record.failed, record.timed_out, record.lost)
        for log, roots in zip(logs, verdicts, strict=True):
            for root in roots.tolist():
                if root not in self._settled:
                    self._judged(root, log[component], acked=log is record.acked)

    def lost(self) -> None:
        """All that is open is lost."""
        self._settled.update(self._open)
        for root in list(self._open):
            self._judged(root, self._record.lost[self._task.component], acked=False)

    def acked(self, ids: Ids) -> None:
        """Nobody judges these."""
        self._record.acked[self._task.component].extend(ids)

    def _judged(self, root: int, log: list[Any], *, acked: bool) -> None:
        tup_id = self._open.pop(root, None)
        log.append(tup_id)
        if self._audit is not None:
            self._audit.judged(self._task.name, root, tup_id, acked=acked)
