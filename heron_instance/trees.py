"""A spout task's open trees: which slot stands for which row, and the rows that wait to be sent again.

A slot is used again only after its verdict, oldest first, under the next generation.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ardea.collectors import TupIds
from ardea.errors import UserError
from ardea.heron_instance.input_batch import Inputs, Int
from ardea.protocol.arrow import rows_of
from ardea.protocol.ids import GENERATIONS, NO_IDS, SLOTS, U64, generations_of, make_roots, slots_of

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_SLOTS = 1024
_MOST_BATCHES = (1 << 32) - 1
Seconds = NDArray[np.float64]
Ids: TypeAlias = list[Any] | NDArray[Any]
BACKOFF = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)


@dataclass(slots=True)
class Row:
    """A tracked row: what the author emitted, and how often it was sent."""

    tup_id: Any
    values: Sequence[Any]
    stream: str
    direct_task: int | None = None
    attempt: int = 0
    failures: int = 0  # of the attempts, those that count against it
    size: int = field(default=0, compare=False)  # encoded bytes, about
    root: int = field(default=0, compare=False)  # of its last tree, once that is broken


@dataclass(slots=True, eq=False)
class TrackedColumns:
    """Rows of a record batch, with what a :class:`Row` says of one; where ``ids`` has a None, the row is not tracked.

    Whatever becomes of some of them makes another object: the rows of one were all sent equally often.
    """

    ids: Ids
    batch: pa.RecordBatch
    stream: str
    attempt: int = 0
    failures: int = 0
    size: int = 0
    roots: U64 = field(default_factory=lambda: NO_IDS)  # of their last trees, once these are broken

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def tracked(self) -> Int | None:
        """The places of the rows that have an id; None: all."""
        if not isinstance(self.ids, list) or None not in self.ids:
            return None
        return np.array([place for place, tup_id in enumerate(self.ids) if tup_id is not None], dtype=np.intp)

    def picked(self, places: Int) -> TrackedColumns:
        """Some of the rows."""
        ids = self.ids_at(places)
        return TrackedColumns(ids, self.batch.take(places), self.stream, self.attempt, self.failures, self.size)

    def ids_at(self, places: NDArray[Any]) -> Ids:
        """Of some of the rows."""
        return [self.ids[place] for place in places.tolist()] if isinstance(self.ids, list) else self.ids[places]

    def rows(self) -> list[Row]:
        """Each for itself, for logs and dead letters; None stands for a value that Python has none for."""
        size = self.size // max(1, len(self))
        return [
            Row(tup_id, values, self.stream, None, self.attempt, self.failures, size)
            for tup_id, values in zip(plain(self.ids), rows_of(self.batch, gaps=True), strict=True)
        ]


def plain(ids: Ids) -> list[Any]:
    """As the author wrote them."""
    return ids if isinstance(ids, list) else ids.tolist()


def ids_of(tup_ids: TupIds) -> Ids:
    """The ids of a batch: an array where they are a range or an array of integers, else a list."""
    if isinstance(tup_ids, range):
        with contextlib.suppress(OverflowError):
            return np.arange(tup_ids.start, tup_ids.stop, tup_ids.step, dtype=np.int64)
        return list(tup_ids)
    ids = np.asarray(tup_ids) if hasattr(tup_ids, "to_numpy") else tup_ids
    if isinstance(ids, np.ndarray) and ids.ndim == 1 and ids.dtype.kind in "iu":
        return ids.copy()
    return tup_ids.to_pylist() if hasattr(tup_ids, "to_pylist") else list(tup_ids)


class OpenTrees:
    """The table of one life of a spout task."""

    def __init__(self, task: int, rng: np.random.Generator) -> None:
        self.task = task
        self._rng = rng
        self._ids: list[Any] = []
        self._rows: list[Any] = []  # values on the default stream, or a Row
        self._sizes = np.zeros(0, dtype=np.uint32)
        self._emitted_at = np.zeros(0, dtype=np.float64)
        self._generation = np.zeros(0, dtype=np.uint32)
        self._batches: dict[int, list[Any]] = {}  # number -> batch, how many of its trees are open
        self._last_batch = 0
        self._batch_of = np.zeros(0, dtype=np.uint32)  # 0: a single row
        self._place = np.zeros(0, dtype=np.uint32)  # in the batch
        self._free: deque[Int] = deque()
        self._free_count = 0
        self.pending = 0
        self.pending_bytes = 0

    def open(self, ids: list[Any], rows: list[Any], size: int, now: float) -> U64:
        """Takes a slot for each row, of ``size`` bytes together; returns the roots.

        ``rows`` are the values emitted on the default stream, or a :class:`Row` where more must be known.
        Raises UserError when the table of 2^20 slots is exhausted.
        """
        count = len(ids)
        slots = self._take(count)
        at = 0
        for run in _runs(slots):
            end = at + run.stop - run.start
            self._ids[run], self._rows[run] = ids[at:end], rows[at:end]
            at = end
        return self._opened(slots, size, now)

    def open_columns(self, columns: TrackedColumns, places: Int, size: int, now: float) -> U64:
        """:meth:`open` for rows of a batch, by their places."""
        slots = self._take(len(places))
        self._last_batch = self._last_batch % _MOST_BATCHES + 1
        self._batches[self._last_batch] = [columns, len(places)]
        self._batch_of[slots] = self._last_batch
        self._place[slots] = places
        return self._opened(slots, size, now)

    def _opened(self, slots: Int, size: int, now: float) -> U64:
        count = len(slots)
        self._sizes[slots] = size // max(1, count)
        self._emitted_at[slots] = now
        self.pending += count
        self.pending_bytes += size // max(1, count) * count
        return make_roots(self.task, slots, self._generation[slots])

    def complete(self, roots: U64, now: float) -> tuple[list[Any], Seconds, list[tuple[Ids, Seconds]]]:
        """Acked: the ids of single rows, and how many seconds each took; the same of each batch.

        Unknown roots are passed over.
        """
        slots, parts = self._of_batches(self._settle(roots))
        ids: list[Any] = []
        for run in _runs(slots):
            ids += self._ids[run]
            # Slots come again oldest first: the whole table would keep its last rows alive.
            self._ids[run] = self._rows[run] = [None] * (run.stop - run.start)
        groups = [(columns.ids_at(self._place[taken]), now - self._emitted_at[taken]) for columns, taken in parts]
        return ids, now - self._emitted_at[slots], groups

    def broken(self, roots: U64, now: float) -> tuple[list[Row], Seconds, list[tuple[TrackedColumns, Seconds]]]:
        """Failed, timed out or lost: the rows, and how many seconds each was open; the same of each batch.

        Unknown roots are passed over.
        """
        slots, parts = self._of_batches(self._settle(roots))
        groups = []
        for columns, taken in parts:
            broken = columns.picked(self._place[taken].astype(np.intp))
            broken.size = int(self._sizes[taken].sum())
            broken.roots = self._former_roots(taken)
            groups.append((broken, now - self._emitted_at[taken]))
        rows = [
            values if type(values) is Row else Row(tup_id, values, "default")
            for tup_id, values in self._take_out(slots)
        ]
        sizes = self._sizes[slots].tolist()
        for row, size, root in zip(rows, sizes, self._former_roots(slots).tolist(), strict=True):
            row.size, row.root = size, root
        return rows, now - self._emitted_at[slots], groups

    def _of_batches(self, slots: Int) -> tuple[Int, list[tuple[TrackedColumns, Int]]]:
        """Slots whose trees are settled: those of single rows, and by batch, which the table forgets with its last."""
        if not self._batches:
            return slots, []
        numbers = self._batch_of[slots]
        parts = []
        # Verdicts come in runs of a batch: only where these begin is looked at, for all would have to be sorted.
        heads = np.flatnonzero(np.diff(numbers)) + 1
        for number in sorted({*numbers[:1].tolist(), *numbers[heads].tolist()}):
            if number:
                taken = slots[numbers == number]
                known = self._batches[number]
                parts.append((known[0], taken))
                known[1] -= len(taken)
                if not known[1]:
                    del self._batches[number]
        self._batch_of[slots] = 0
        return slots[numbers == 0], parts

    def _settle(self, roots: U64) -> Int:
        """A verdict for each root; returns the slots of those that were open."""
        slots = slots_of(roots)
        if len(slots) and int(slots.max()) >= len(self._generation):
            slots, roots = slots[slots < len(self._generation)], roots[slots < len(self._generation)]
        known = self._generation[slots] == generations_of(roots)
        if not known.all():
            slots = slots[known]
        self._generation[slots] = (self._generation[slots] + np.uint32(1)) % np.uint32(GENERATIONS)
        self.pending -= len(slots)
        self.pending_bytes -= int(self._sizes[slots].sum())
        self._give(slots)
        return slots

    def _former_roots(self, slots: Int) -> U64:
        """Of the trees that :meth:`_settle` has just taken out of these slots."""
        former = (self._generation[slots] + np.uint32(GENERATIONS - 1)) % np.uint32(GENERATIONS)
        return make_roots(self.task, slots, former)

    def _take_out(self, slots: Int) -> list[tuple[Any, Any]]:
        """(id, row) of each slot, which the table forgets."""
        ids, rows, out = self._ids, self._rows, []
        for slot in slots.tolist():
            out.append((ids[slot], rows[slot]))
            ids[slot] = rows[slot] = None
        return out

    def all_open(self) -> U64:
        """The roots of every open tree."""
        taken = np.ones(len(self._generation), dtype=bool)
        for part in self._free:
            taken[part] = False
        slots = np.flatnonzero(taken)
        return make_roots(self.task, slots, self._generation[slots])

    @property
    def room(self) -> int:
        """How many trees could still be opened."""
        return SLOTS - self.pending

    def _take(self, count: int) -> Int:
        if count > self.room:
            raise UserError(
                f"spout task {self.task} has {self.pending:,} open trees and one call emits {count:,} more: "
                f"the table holds {SLOTS:,} (topology.max.spout.pending gates next_tuple, not one call's emits)",
                hint="emit less in one call of next_tuple, or emit without tup_id",
            )
        while self._free_count < count:
            self._grow()
        parts, missing = [], count
        while missing:
            part = self._free.popleft()
            if len(part) > missing:
                self._free.appendleft(part[missing:])
                part = part[:missing]
            parts.append(part)
            missing -= len(part)
        self._free_count -= count
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, dtype=np.intp)

    def _give(self, slots: Int) -> None:
        if len(slots):
            self._free.append(slots)
            self._free_count += len(slots)

    def _grow(self) -> None:
        """Doubles the table: memory follows what is pending."""
        before = len(self._generation)
        extra = max(FIRST_SLOTS, min(before, SLOTS - before))
        fresh = self._rng.integers(0, GENERATIONS, size=extra, dtype=np.uint32)
        self._generation = np.concatenate((self._generation, fresh))
        self._sizes = np.concatenate((self._sizes, np.zeros(extra, dtype=np.uint32)))
        self._emitted_at = np.concatenate((self._emitted_at, np.zeros(extra)))
        self._batch_of = np.concatenate((self._batch_of, np.zeros(extra, dtype=np.uint32)))
        self._place = np.concatenate((self._place, np.zeros(extra, dtype=np.uint32)))
        self._ids.extend([None] * extra)
        self._rows.extend([None] * extra)
        self._give(np.arange(before, before + extra, dtype=np.intp))


def _runs(slots: Int) -> Iterator[slice]:
    """The slots as slices of neighbours, in order: usually one or two, which is much faster than one by one."""
    if len(slots):
        cuts = (np.flatnonzero(slots[1:] - slots[:-1] != 1) + 1).tolist()
        for start, end in pairwise((0, *cuts, len(slots))):
            first = int(slots[start])
            yield slice(first, first + end - start)


@dataclass(slots=True)
class Trees:
    """The trees of a buffer's rows: ``roots`` flat, ``counts`` for each row (None: one each)."""

    roots: U64
    counts: Int | None = None
    marks: Int | None = None  # a bolt's plain marks
    inputs: Inputs | None = None  # or, of a bolt, whose rows these are
    xors: U64 | None = None  # for each row, the edges emitted so far
    traces: dict[int, Any] | None = None  # row -> where it stands in its trace, of those sampled
    announced: NDArray[np.bool_] | None = None  # for each row of a spout, whether its tree has begun
    all_announced: bool = False

    def announce(self, picked: Int | None) -> Int:
        """The trees of these rows (None: all) begin; returns the rows of those that had not."""
        if self.all_announced:
            return np.empty(0, dtype=np.intp)
        if self.announced is None:
            count = len(self.roots) if self.counts is None else len(self.counts)
            if picked is None:
                self.all_announced = True
                return np.arange(count, dtype=np.intp)
            self.announced = np.zeros(count, dtype=np.bool_)
        if picked is None:
            rows = np.flatnonzero(~self.announced)
        else:
            fresh = np.zeros(len(self.announced), dtype=np.bool_)
            fresh[picked] = True
            rows = np.flatnonzero(fresh & ~self.announced)
        self.announced[rows] = True
        self.all_announced = picked is None
        return rows


class Replays:
    """Rows of failed trees, until they are sent again: at once the first time, then backing off per row."""

    def __init__(self) -> None:
        self.size = 0  # bytes
        self._due: list[tuple[float, int, Row | TrackedColumns]] = []
        self._count = 0
        self._rows = 0

    def add(self, row: Row | TrackedColumns, now: float) -> None:
        """Schedules the next attempt of a row, or of rows that were sent together."""
        delay = BACKOFF[min(row.attempt, len(BACKOFF) - 1)]
        self._count += 1
        row.attempt += 1
        self.size += row.size
        self._rows += _rows_in(row)
        heapq.heappush(self._due, (now + delay, self._count, row))

    def take(self) -> Row | TrackedColumns:
        """What is due first."""
        row = heapq.heappop(self._due)[2]
        self.size -= row.size
        self._rows -= _rows_in(row)
        return row

    @property
    def next_due(self) -> float:
        """When the next row is due; infinity: none is."""
        return self._due[0][0] if self._due else math.inf

    def __len__(self) -> int:
        return self._rows


def _rows_in(entry: Row | TrackedColumns) -> int:
    return len(entry) if isinstance(entry, TrackedColumns) else 1
