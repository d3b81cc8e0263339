"""The real executors, watched: what leaves them, and what a spout hears of its trees, goes into the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ardea.heron_instance.bolt import BoltExecutor
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.column_bolt import ColumnBoltExecutor
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.spout import SpoutExecutor
from ardea.heron_instance.trees import Row, Trees, plain
from ardea.protocol.ids import column
from ardea.protocol.wire_pb2 import VERDICTS, Header
from ardea.testing.audit import Audit
from ardea.testing.record import Record


class WatchedBolt(BoltExecutor):
    """A bolt's executor."""

    def __init__(self, env: Environment, record: Record, audit: Audit | None) -> None:  # noqa: ARG002
        self._record = record
        super().__init__(env)

    def send_rows(self, part: StreamBuffer | None = None) -> float:
        """Notes what leaves."""
        self._record.left(self.env.task, self.outlet, part, ids=False)
        return super().send_rows(part)


class WatchedColumnBolt(WatchedBolt, ColumnBoltExecutor):
    """The executor of a bolt that reads columns."""


class WatchedSpout(SpoutExecutor):
    """A spout's executor."""

    def __init__(self, env: Environment, record: Record, audit: Audit | None) -> None:
        self._record = record
        self._audit = audit
        self._open: dict[int, Any] = {}  # root -> tup_id
        self._settled: set[int] = set()  # by itself: a verdict on one of these is late
        super().__init__(env)

    def send_rows(self, part: StreamBuffer | None = None) -> None:
        """Notes what leaves."""
        self._record.left(self.env.task, self.outlet, part, ids=True)
        super().send_rows(part)

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        """Notes which root stands for which row."""
        trees = super().trees(buffer, size)
        if trees is not None:
            roots = trees.roots.tolist()
            marks = buffer.marks if buffer.origin is None else plain(buffer.origin.ids)
            ids = [m.tup_id if type(m) is Row else m for m in marks if m is not None]
            self._open.update(zip(roots, ids, strict=True))
            if self._audit is not None:
                self._audit.opened(self.env.task.name, roots)
        return trees

    def received(self, header: Header, frames: Sequence[bytes]) -> None:
        """Notes the verdicts, before the author hears of them."""
        if header.kind == VERDICTS:
            record, component = self._record, self.env.task.component
            logs = (record.acked, record.failed, record.timed_out, record.lost)
            for log, frame in zip(logs, frames, strict=True):
                for root in column(frame).tolist():
                    if root not in self._settled:
                        self._judged(root, log[component], acked=log is record.acked)
        super().received(header, frames)

    def lose_all(self) -> None:
        """All that is open is lost."""
        self._settled.update(self._open)
        for root in list(self._open):
            self._judged(root, self._record.lost[self.env.task.component], acked=False)
        super().lose_all()

    def _judged(self, root: int, log: list[Any], *, acked: bool) -> None:
        tup_id = self._open.pop(root, None)
        log.append(tup_id)
        if self._audit is not None:
            self._audit.judged(self.env.task.name, root, tup_id, acked=acked)

    def _ack_at_once(self) -> None:
        self._take_ids(self.outlet.buffers.values())
        self._record.acked[self.env.task.component].extend(self._left)
        super()._ack_at_once()
