"""Input batches: decoded rows, the trees they belong to, and what their processing adds to those trees."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ardea.errors import ProtocolError
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import decode_batch, rows_of
from ardea.protocol.columns import ColumnRows
from ardea.protocol.ids import NO_IDS, U64, column, fold, offsets_column
from ardea.protocol.wire_pb2 import MANY, UNTRACKED, Header
from ardea.tuples import ColumnBatch

if TYPE_CHECKING:
    import pyarrow as pa

Int = NDArray[np.intp]
UNANCHORED = -1
WHOLE_BATCH = -2
"""Marks of what is emitted, beside the number of an input row."""


@dataclass(slots=True)
class InputTrees:
    """The trees that rows of a batch are in: ``roots`` flat, and the row's edge in each.

    ``counts`` of them belong to each row (None: one each), from ``starts`` on.
    """

    roots: U64
    edges: U64
    counts: Int | None = None
    starts: Int | None = None

    @classmethod
    def read(cls, header: Header, frames: Sequence[bytes]) -> InputTrees:
        """Raises ProtocolError, ``MALFORMED_ROWS``."""
        if header.ids == UNTRACKED:
            return cls(NO_IDS, NO_IDS)
        trees = cls(column(frames[-2]), column(frames[-1]))
        if header.ids == MANY:
            offsets = offsets_column(frames[1]).astype(np.intp)
            trees.starts, trees.counts = offsets[:-1], np.diff(offsets)
            if offsets[0] or offsets[-1] != len(trees.roots) or (trees.counts < 0).any():
                raise ProtocolError("MALFORMED_ROWS", "the ids of the rows do not say which row each belongs to")
        return trees

    def kept(self, rows: Int) -> InputTrees:
        """Those of some of the rows."""
        if self.counts is None or self.starts is None:
            return InputTrees(self.roots[rows], self.edges[rows]) if len(self.roots) else self
        counts = self.counts[rows]
        flat = ranges(self.starts[rows], counts)
        return InputTrees(self.roots[flat], self.edges[flat], counts, np.cumsum(counts) - counts)

    def acks(self, rows: Int | None, xors: U64 | None) -> tuple[U64, U64]:
        """(roots, values) that acking those rows (None: all) sends; the edges ``xors``, if any, hang on each."""
        if self.counts is None or self.starts is None:
            if rows is None:
                return self.roots, self.edges if xors is None else self.edges ^ xors
            values = self.edges[rows]
            return self.roots[rows], values if xors is None else values ^ xors[rows]
        if rows is None:
            rows = np.arange(len(self.counts), dtype=np.intp)
        counts = self.counts[rows]
        flat = ranges(self.starts[rows], counts)
        values = self.edges[flat]
        if xors is not None:
            values = values ^ np.repeat(xors[rows], counts)
        return self.roots[flat], values


class InputBatch:
    """One arrived batch, alive as long as a tuple of it is held.

    ``xors`` collects, for each row, the edges of what was emitted anchored to it, so that its ack is one value for
    each of its roots.  ``acks_sent`` are the rows whose explicit acks have left (None: none); ``refused`` those that
    failed because a row anchored to them cannot be sent.
    """

    __slots__ = (
        "acked_below",
        "acks_sent",
        "arrived",
        "component",
        "fields",
        "header",
        "partial",
        "refused",
        "rows",
        "settled",
        "size",
        "stream",
        "task",
        "traces",
        "trees",
        "xors",
    )

    def __init__(
        self,
        header: Header,
        frames: Sequence[bytes],
        rows: Sequence[tuple[Any, ...]],
        component: str,
        stream: StreamPlan,
    ) -> None:
        """Raises ProtocolError, ``MALFORMED_ROWS``: these are not the rows that the header tells of."""
        self.header = header
        self.rows = rows
        self.component = component
        self.stream = stream.name
        self.fields = stream.fields
        self.task = header.source
        self.xors: U64 | None = None
        self.partial: dict[int, dict[int, int]] = {}  # row -> root -> edges that hang on this root only
        self.settled: set[int] | SettledRows = set()
        self.acks_sent: NDArray[np.bool_] | None = None
        self.refused: set[int] = set()
        self.acked_below = 0
        self.arrived = 0.0
        self.traces: dict[int, Any] = {}  # row -> where it stands in its trace, of those sampled
        self.size = sum(map(len, frames))
        if len(rows) != header.rows:
            raise ProtocolError("MALFORMED_ROWS", f"{len(rows)} rows arrived as {header.rows}")
        self.trees = InputTrees.read(header, frames)

    @property
    def tracked(self) -> bool:
        """Whether any row belongs to a tree."""
        return len(self.trees.roots) > 0

    def settled_at(self, rows: Int) -> NDArray[np.bool_]:
        """Which of those rows are acked or failed already."""
        settled = rows < self.acked_below
        if self.settled:
            settled |= np.isin(rows, list(self.settled))
        return settled

    def tell(self, rows: Int) -> None:
        """Their acks leave: no edge that hangs on them later would be heard of, and their trees would time out."""
        if self.acks_sent is None:
            self.acks_sent = np.zeros(len(self.rows), dtype=np.bool_)
        self.acks_sent[rows] = True

    def open_at(self, marks: Int) -> NDArray[np.bool_]:
        """Which of those marks are rows that edges may hang on."""
        rows = marks >= 0
        return rows if self.acks_sent is None else rows & ~self.acks_sent[marks]

    @property
    def open_rows(self) -> Int:
        """All rows that edges may hang on."""
        everything = np.arange(len(self.rows), dtype=np.intp)
        return everything if self.acks_sent is None else everything[~self.acks_sent]

    def id_of(self, index: int) -> str:
        """A name for one tuple, for logs: source task, lane sequence, place in the batch."""
        return f"{self.task}:{self.header.sequence}:{index}"

    def shown(self, index: int) -> tuple[Any, ...]:
        """One row for logs and dead letters; None stands for a value of a column that Python has none for."""
        if isinstance(self.rows, ColumnRows):
            return rows_of(self.rows.batch.slice(index, 1), gaps=True)[0]
        return self.rows[index]

    def root_of(self, index: int) -> int:
        """The first of the trees that one tuple belongs to; 0: it is not tracked."""
        roots, _ = self.roots_of(np.array([index], dtype=np.intp)) if self.tracked else (NO_IDS, None)
        return int(roots[0]) if len(roots) else 0

    def roots_of(self, rows: Int) -> tuple[U64, Int | None]:
        """The roots of those rows, and how many each has (None: one each)."""
        trees = self.trees
        if trees.counts is None or trees.starts is None:
            return trees.roots[rows], None
        counts = trees.counts[rows]
        return trees.roots[ranges(trees.starts[rows], counts)], counts

    def anchor(self, rows: Int, edges: U64) -> None:
        """New edges hang on those rows; a row may appear more than once."""
        if self.xors is None:
            self.xors = np.zeros(len(self.rows), dtype=np.uint64)
        rows64, edges = fold(rows.view(np.uint64), edges)
        self.xors[rows64.view(np.intp)] ^= edges

    def anchor_part(self, row: int, roots: Sequence[int], edge: int) -> None:
        """A new edge hangs on some of the row's trees only: another anchor carries it for the others."""
        part = self.partial.setdefault(row, {})
        for root in roots:
            part[root] = part.get(root, 0) ^ edge

    def acks(self, rows: Int | None) -> tuple[U64, U64]:
        """(roots, values) that acking those rows sends; None: all rows."""
        roots, values = self.trees.acks(rows, self.xors)
        if self.partial:
            values = values.copy()
            for row, part in self.partial.items():
                if rows is None or row in rows:
                    for root, edge in part.items():
                        values[np.flatnonzero(roots == root)[0]] ^= np.uint64(edge)
        return roots, values


@dataclass(frozen=True, slots=True)
class Inputs:
    """Rows of a batch one after the other, from ``first`` on, of one root each, and how many were emitted for each.

    Nearly all that a bolt emits is of such, and needs no mark at each row.
    """

    batch: InputBatch
    first: int
    counts: Int

    def roots(self) -> U64:
        """The root of each emitted row."""
        return np.repeat(self.batch.trees.roots[self.first : self.first + len(self.counts)], self.counts)

    def hang(self, edges: U64) -> None:
        """A new edge for each emitted row."""
        batch, emitted = self.batch, np.flatnonzero(self.counts)
        if batch.xors is None:
            batch.xors = np.zeros(len(batch.rows), dtype=np.uint64)
        starts = (np.cumsum(self.counts) - self.counts)[emitted]
        batch.xors[self.first + emitted] ^= np.bitwise_xor.reduceat(edges, starts)


class SettledRows:
    """Which rows of a batch are acked or failed: a set of their numbers, kept as an array."""

    def __init__(self, rows: int) -> None:
        self.mask = np.zeros(rows, dtype=np.bool_)
        self._count = 0

    def add(self, row: int) -> None:
        """One row."""
        self._count += not self.mask[row]
        self.mask[row] = True

    def update(self, rows: Int) -> None:
        """Rows that are not among them."""
        self.mask[rows] = True
        self._count += len(rows)

    def __contains__(self, row: int) -> bool:
        return bool(self.mask[row])

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(np.flatnonzero(self.mask).tolist())


class ColumnInput(InputBatch):
    """A batch for a bolt that reads columns."""

    __slots__ = ("settled_rows",)

    rows: ColumnRows

    def __init__(
        self, header: Header, frames: Sequence[bytes], rows: ColumnRows, component: str, stream: StreamPlan
    ) -> None:
        super().__init__(header, frames, rows, component, stream)
        self.settled = self.settled_rows = SettledRows(len(rows))

    @property
    def columns(self) -> ColumnBatch:
        """What the bolt gets.  Not kept: with a cycle, megabytes would wait for the garbage collector."""
        return ColumnBatch(self.rows.batch, self)

    def kept(self, rows: Int) -> ColumnInput:
        """Some of the rows, before anything became of any."""
        rest = copy.copy(self)
        rest.rows = ColumnRows(self.rows.batch.take(rows))
        rest.settled = rest.settled_rows = SettledRows(len(rows))
        rest.trees = self.trees.kept(rows)
        return rest

    def settled_at(self, rows: Int) -> NDArray[np.bool_]:
        """Without a look at each."""
        settled: NDArray[np.bool_] = self.settled_rows.mask[rows] | (rows < self.acked_below)
        return settled


def ranges(starts: Int, counts: Int) -> Int:
    """Concatenated ranges: [starts[i], starts[i] + counts[i]) for each i."""
    total = int(counts.sum())
    ends = np.cumsum(counts)
    out: Int = np.arange(total, dtype=np.intp) + np.repeat(starts - (ends - counts), counts)
    return out


def decode_columns(values: bytes, stream: StreamPlan) -> pa.RecordBatch:
    """A record batch with as many columns as the stream has fields; else raises ProtocolError."""
    batch = decode_batch(values)
    if batch.num_columns != len(stream.fields):
        raise ProtocolError("MALFORMED_ROWS", f"rows of stream {stream.name} do not have {len(stream.fields)} values")
    return batch
