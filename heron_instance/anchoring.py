"""Which trees a bolt's rows belong to: the marks that emits leave, and the edges that hang on them.

A mark is the index of the input tuple that a row is anchored to, ``UNANCHORED``, ``WHOLE_BATCH``, or several tuples,
perhaps of former batches; spans say which input batch the plain indexes belong to.  A bolt whose only stream is a
plain one leaves no mark at an emit: a run says once for each input where its rows end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.column_anchors import ColumnAnchors, Part
from ardea.heron_instance.input_batch import UNANCHORED, WHOLE_BATCH, InputBatch, Inputs, Int
from ardea.heron_instance.parcels import RowParcel
from ardea.heron_instance.trees import Trees
from ardea.protocol.ids import U64, distinct
from ardea.tuples import Tuple

Anchors = tuple[Tuple, ...]
Span = tuple[InputBatch | None, int, int]


@dataclass(slots=True)
class Run:
    """Inputs processed one after the other: the rows of input ``first + i`` end before row ``ends[i]``.

    ``start`` is the row where they begin; while the run is open, what follows the last end is the next input's.
    """

    start: int
    first: int
    ends: list[int] = field(default_factory=list)
    open: bool = True


class Anchoring:
    """The origins of all rows since the last flush; ``mixed``: some mark is not a plain index.

    ``always_mixed``: one may be at any time, because emits are anchored to whole batches.
    """

    def __init__(self, *, always_mixed: bool) -> None:
        self._always_mixed = always_mixed
        self.mixed = always_mixed
        self._spans: dict[int, list[tuple[InputBatch, int]]] = {}
        self._runs: list[Run] = []

    def run(self, start: int, first: int) -> Run:
        """Inputs from ``first`` on are processed now; what they emit begins at row ``start``."""
        run = Run(start, first)
        self._runs.append(run)
        return run

    def close(self, run: Run, end: int) -> None:
        """No more inputs; rows up to ``end`` are the last one's."""
        run.open = False
        if end == run.start and self._runs and self._runs[-1] is run:
            self._runs.pop()  # nothing was emitted: without a flush, they would pile up
            return
        if end > (run.ends[-1] if run.ends else run.start):
            run.ends.append(end)

    def begin(self, batch: InputBatch, buffers: Iterable[StreamBuffer]) -> None:
        """What is emitted from now on is marked by indexes into ``batch``."""
        for buffer in buffers:
            spans = self._spans.setdefault(buffer.number, [])
            if spans and spans[-1][0] is batch:
                continue
            if spans and spans[-1][1] == len(buffer.rows.values):
                spans.pop()  # nothing was emitted since: without a flush, they would pile up
            spans.append((batch, len(buffer.rows.values)))

    def restart(self, batch: InputBatch | None, buffers: Iterable[StreamBuffer]) -> None:
        """After a flush, in the middle of ``batch`` or of none."""
        self._spans.clear()
        self._runs = [run for run in self._runs if run.open]
        for run in self._runs:  # the flush was inside its present input's call
            run.start, run.first = 0, run.first + len(run.ends)
            run.ends.clear()
        self.mixed = self._always_mixed
        if batch is not None:
            self.begin(batch, buffers)

    def part(self, start: int, end: int) -> Anchoring:
        """Those of the rows from ``start`` to ``end`` of the only stream, while its present input may emit more.

        What has ended is looked at after the rows were counted: these have their owners then.
        """
        part = Anchoring(always_mixed=self._always_mixed)
        part.mixed = self.mixed
        part._spans = dict(self._spans)
        part._runs = [Run(run.start, run.first, [min(each, end) for each in run.ends], run.open) for run in self._runs]
        part.cut(start)
        return part

    def cut(self, rows: int) -> None:
        """The first rows of the only stream have left."""
        for run in self._runs:  # in place: one that is open goes on
            ended = bisect_right(run.ends, rows)
            run.first += ended
            run.ends[:] = [end - rows for end in run.ends[ended:]]
            run.start = max(0, run.start - rows)
        self._runs = [run for run in self._runs if run.open or run.ends]
        for number, spans in self._spans.items():
            self._spans[number] = [(batch, max(0, start - rows)) for batch, start in spans]

    def take_out(self, buffer: StreamBuffer, row: int) -> list[tuple[InputBatch, int]]:
        """A row is about to be removed; returns the tracked tuples it was anchored to."""
        anchors = self.anchors_of(buffer, row)
        if buffer.columns is not None:
            return anchors
        self.mark(buffer.rows)
        for run in self._runs:  # in place: one that is open goes on
            run.start -= run.start > row
            run.ends[:] = [end - (end > row) for end in run.ends]
        spans = self._spans.get(buffer.number, [])
        self._spans[buffer.number] = [(batch, start - (start > row)) for batch, start in spans]
        return anchors

    def anchors_of(self, buffer: StreamBuffer, row: int) -> list[tuple[InputBatch, int]]:
        """The tracked tuples that a row is anchored to."""
        if buffer.columns is not None:
            return [] if buffer.columns.origin is None else buffer.columns.origin.anchors_of(row)
        marks, spans = buffer.rows.marks, self._spans.get(buffer.number, [])
        owner = next((batch for batch, start in reversed(spans) if start <= row), None)
        return _anchors_of(marks[row] if row < len(marks) else self._owner(row), owner)

    def mark(self, rows: RowParcel) -> None:
        """Gives the rows that have none their marks, before one gets another."""
        marks = rows.marks
        for row in range(len(marks), len(rows.values)):
            marks.append(self._owner(row))

    def _owner(self, row: int) -> int:
        for run in reversed(self._runs):
            if row >= run.start:
                index = bisect_right(run.ends, row)
                return run.first + index if run.open or index < len(run.ends) else UNANCHORED
        return UNANCHORED

    def _marks(self, rows: RowParcel) -> Int:
        """All marks of rows of which none has several anchors."""
        total, known = len(rows.values), len(rows.marks)
        if known == total:
            return np.array(rows.marks, dtype=np.intp)
        parts = [self._owners(run, total) for run in self._runs]
        if len(parts) == 1 and len(parts[0]) == total and not known:
            return parts[0]
        marks = np.full(total, UNANCHORED, dtype=np.intp)
        for run, owners in zip(self._runs, parts, strict=True):
            marks[run.start : run.start + len(owners)] = owners
        marks[:known] = rows.marks
        return marks

    @staticmethod
    def _owners(run: Run, total: int) -> Int:
        ends = np.array([run.start, *run.ends, total] if run.open else [run.start, *run.ends], dtype=np.intp)
        counts = ends[1:] - ends[:-1]
        return np.arange(run.first, run.first + len(counts), dtype=np.intp).repeat(counts)

    def _in_a_row(self, batch: InputBatch, total: int) -> Inputs | None:
        """Whose rows these are, if every one is of an input, and the inputs follow on one another."""
        if not self._runs:
            return None
        first, cuts = self._runs[0].first, [0]
        for run in self._runs:
            if run.start == total:
                break  # none of these rows is of its inputs, which may be another batch's
            if run.start != cuts[-1] or run.first != first + len(cuts) - 1:
                return None
            cuts += run.ends
            if run.open and total > cuts[-1]:
                cuts.append(total)
        return Inputs(batch, first, np.diff(cuts)) if cuts[-1] == total else None

    def trees(self, buffer: StreamBuffer) -> Trees | None:
        """The trees of the rows' anchors."""
        if buffer.columns is not None:
            return None if buffer.columns.origin is None else buffer.columns.origin.trees()
        rows, spans = buffer.rows, self._spans_of(buffer)
        if self.mixed:
            self.mark(rows)
            if rows.marks.count(UNANCHORED) == len(rows.marks):
                return None
            return self._mixed_trees(rows.marks, spans)
        if not any(batch is not None and batch.tracked for batch, _, _ in spans):
            return None
        total = len(rows.values)
        batch = spans[0][0] if len(spans) == 1 else None
        if batch is not None and batch.trees.counts is None and batch.acks_sent is None and not rows.marks:
            inputs = self._in_a_row(batch, total)
            if inputs is not None:
                return Trees(inputs.roots(), inputs=inputs)
        marks = self._marks(rows)
        if batch is not None and batch.open_at(marks).all():
            part, each = batch.roots_of(marks)
            return Trees(part, each, marks=marks)
        roots: list[U64] = []
        counts = np.zeros(total, dtype=np.intp)
        for batch, start, end in spans:
            if batch is None or not batch.tracked:
                continue
            known = np.flatnonzero(batch.open_at(marks[start:end]))
            if not len(known):
                continue
            part, each = batch.roots_of(marks[start:end][known])
            roots.append(part)
            counts[known + start] = 1 if each is None else each
        if not roots:
            return None
        one_each = bool((counts == 1).all())
        return Trees(np.concatenate(roots), None if one_each else counts, marks=marks)

    def _mixed_trees(self, marks: list[int | Anchors], spans: list[Span]) -> Trees | None:
        """Some rows name their anchors: several, or tuples of former batches."""
        parts: list[U64] = []
        counts = np.zeros(len(marks), dtype=np.intp)
        for batch, start, end in spans:
            whole = _whole(batch).trees()
            for place in range(start, end):
                if marks[place] == WHOLE_BATCH:
                    roots = [] if whole is None else [whole.roots]
                else:
                    roots = [b.roots_of(one(i))[0] for b, i in _anchors_of(marks[place], batch)]
                if roots:
                    # A root that two anchors share counts once: the row has one edge in each tree.
                    row = distinct(np.sort(np.concatenate(roots)))
                    parts.append(row)
                    counts[place] = len(row)
        if not parts:
            return None
        return Trees(np.concatenate(parts), counts)

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """The new edges hang on the anchors."""
        if trees.xors is None:
            return  # nobody reads the stream
        if buffer.columns is not None:
            buffer.columns.origin.hang(trees.xors)
            return
        if trees.inputs is not None:
            trees.inputs.hang(trees.xors)
            return
        rows = buffer.rows
        for batch, start, end in self._spans_of(buffer):
            if self.mixed:
                whole = _whole(batch)
                for place in range(start, end):
                    edge = trees.xors[place : place + 1]
                    if rows.marks[place] == WHOLE_BATCH:
                        whole.hang(edge)
                    else:
                        self._hang(_anchors_of(rows.marks[place], batch), edge)
            elif batch is not None and batch.tracked:
                assert trees.marks is not None
                marks, xors = trees.marks[start:end], trees.xors[start:end]
                known = batch.open_at(marks)
                batch.anchor(*((marks, xors) if known.all() else (marks[known], xors[known])))

    @staticmethod
    def _hang(anchors: list[tuple[InputBatch, int]], edge: U64) -> None:
        """The edge goes into exactly one anchor for each root, so that it stands once in each tree."""
        seen: set[int] = set()
        for batch, index in anchors:
            roots = batch.roots_of(one(index))[0].tolist()
            fresh = [root for root in roots if root not in seen]
            seen.update(fresh)
            if len(fresh) == len(roots):
                batch.anchor(one(index), edge)
            elif fresh:
                batch.anchor_part(index, fresh, int(edge[0]))

    def _spans_of(self, buffer: StreamBuffer) -> list[Span]:
        """(input batch, first row, end) in order; rows before the first batch have none."""
        spans: list[tuple[InputBatch | None, int]] = [(None, 0), *self._spans.get(buffer.number, [])]
        ends = [start for _, start in spans[1:]] + [len(buffer.rows.values)]
        return [(batch, start, end) for (batch, start), end in zip(spans, ends, strict=True) if end > start]


def one(index: int) -> Int:
    """An index array of one."""
    return np.array([index], dtype=np.intp)


def _whole(batch: InputBatch | None) -> ColumnAnchors:
    """One row that is anchored to a whole batch."""
    if batch is None:
        return ColumnAnchors([], 1)
    rows = batch.open_rows
    return ColumnAnchors([Part(batch, rows, np.array([len(rows)], dtype=np.intp))], 1)


def _anchors_of(mark: int | Anchors, batch: InputBatch | None) -> list[tuple[InputBatch, int]]:
    """The tracked tuples that a row is anchored to, but for those whose acks have left."""
    if isinstance(mark, tuple):
        return [(t._batch, t._index) for t in mark if t._batch.tracked]
    if batch is None or not batch.tracked:
        return []
    if mark == WHOLE_BATCH:
        return [(batch, index) for index in batch.open_rows.tolist()]
    if mark < 0 or (batch.acks_sent is not None and batch.acks_sent[mark]):
        return []
    return [(batch, mark)]
