"""Windows over the tuples of a partition, kept in an opaque state and moved on in the commit phase.

The rows of a batch are a value of the state, its *slot*, or two; one more is the index: which slots hold which rows,
and which window comes next.  A transaction that comes again starts from the index before it, so that each row enters
the windows once, and each window is emitted by one committed transaction.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, Self

from ardea.errors import TopologyError, UserError
from ardea.metrics import CountMetric
from ardea.trident.event_windows import EventChunk, EventWindowConfig, free_slot
from ardea.trident.folds import Aggregation, fold_of
from ardea.trident.maps import OpaqueMap
from ardea.trident.operations import Collector, OperationContext
from ardea.trident.state import Key, StateUpdater
from ardea.trident.tuples import Row, Rows, TridentTuple

Length = int | timedelta
"""Of a window: so many tuples, or a time."""
LATE = "trident-late-rows"
"""The metric of all windows of a task."""


@dataclass(frozen=True, slots=True)
class WindowConfig:
    """A window of ``length`` that begins anew, or moves on, every ``slide``: tuples, or seconds if ``timed``."""

    length: float
    slide: float
    timed: bool = False
    ahead: ClassVar[tuple[str, ...]] = ()
    bounds: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not 0 < self.slide <= self.length:
            raise TopologyError(
                [f"a window of {self.length:g} cannot slide by {self.slide:g}: more than 0, at most it"]
            )

    @classmethod
    def of(cls, length: Length, slide: Length | None = None) -> Self:
        """Both of the same type; without ``slide`` windows do not overlap (tumble)."""
        slide = length if slide is None else slide
        if isinstance(length, timedelta) and isinstance(slide, timedelta):
            return cls(length.total_seconds(), slide.total_seconds(), timed=True)
        if isinstance(length, int) and isinstance(slide, int):
            return cls(length, slide)
        raise TopologyError([f"a window's length and slide are two numbers or two timedeltas, not {length}, {slide}"])

    def stored(self, value: Any) -> Index:
        """What a partition knew when it stored that."""
        if value is None:
            return Index(self, [], end=0.0 if self.timed else self.slide)
        rows, time, end, chunks = value
        return Index(self, [Chunk(*chunk) for chunk in chunks], rows, time, end)


class Chunk(NamedTuple):
    """The rows that one transaction added: ``first`` of all counts the rows before it, ``time`` when it committed."""

    slot: int
    txid: int
    first: int
    size: int
    time: float


@dataclass(frozen=True, slots=True)
class Complete:
    """A complete window: ``parts`` of chunks (first row, end)."""

    parts: list[tuple[Chunk, int, int]]
    bounds: ClassVar[tuple[float, ...]] = ()

    @property
    def chunks(self) -> list[Chunk]:
        """That have rows of it."""
        return [chunk for chunk, _, _ in self.parts]

    def rows(self, of: Mapping[int, Rows]) -> Rows:
        """``of``: slot -> rows."""
        return [row for chunk, first, end in self.parts for row in of[chunk.slot][first:end]]


@dataclass(slots=True)
class Index:
    """What a partition knows of its rows.  ``end``: the next window covers what lies in ``(end - length, end]``.

    Ends are multiples of the slide: of rows, or of seconds since 1970.
    """

    config: WindowConfig
    chunks: list[Chunk]
    rows: int = 0
    time: float = -math.inf
    end: float = 0.0

    def value(self) -> Any:
        """To be stored."""
        return [self.rows, self.time, self.end, [list(chunk) for chunk in self.chunks]]

    def add(self, txid: int, rows: Rows, now: float) -> dict[int, Rows]:
        """A transaction commits rows at ``now``, which does not go back; returns those to be kept, by slot."""
        self.time = max(self.time, now)
        if not rows:
            return {}
        if self.config.timed and not self.chunks:
            self.end = max(self.end, math.ceil(self.time / self.config.slide) * self.config.slide)
        slot = free_slot([chunk.slot for chunk in self.chunks])
        self.chunks.append(Chunk(slot, txid, self.rows, len(rows), self.time))
        self.rows += len(rows)
        return {slot: rows}

    def fire(self) -> Iterator[Complete]:
        """The windows that are complete, and forgets what no more is needed.

        A timed window without rows is passed over.
        """
        config = self.config
        while self.end < self.time if config.timed else self.end <= self.rows:
            begin = self.end - config.length
            if parts := [part for chunk in self.chunks if (part := self._part(chunk, begin, self.end)) is not None]:
                yield Complete(parts)
            self.end += config.slide
            oldest = self.end - config.length
            self.chunks = [c for c in self.chunks if (c.time if config.timed else c.first + c.size) > oldest]
            if config.timed and not self.chunks:
                self.end = max(self.end, math.ceil(self.time / config.slide) * config.slide)

    def _part(self, chunk: Chunk, begin: float, end: float) -> tuple[Chunk, int, int] | None:
        if self.config.timed:
            return (chunk, 0, chunk.size) if begin < chunk.time <= end else None
        first, behind = max(0, int(begin) - chunk.first), min(chunk.size, int(end) - chunk.first)
        return (chunk, first, behind) if first < behind else None


AnyChunk = Chunk | EventChunk


class WindowUpdater(StateUpdater):
    """Moves the window of a partition on, and emits what the aggregator makes of each complete one."""

    updates_always = True
    by_partition = True

    def __init__(self, config: WindowConfig | EventWindowConfig, aggregation: Aggregation) -> None:
        self._config, self._aggregation = config, aggregation
        self._rows: dict[int, Rows] = {}  # by slot
        self._txids: dict[int, int] = {}  # whose they are

    def prepare(self, config: Mapping[str, Any], context: OperationContext) -> None:
        """Makes the aggregator's fold."""
        self._now = context.task.now
        known = context.task.metrics.get(LATE)  # of another window of the task
        self._late = known if isinstance(known, CountMetric) else context.task.register_metric(LATE, CountMetric())
        self._partition = context.partition_index
        self._fold = fold_of([copy.deepcopy(self._aggregation)], self._aggregation.inputs)
        self._fold.prepare(config, context)

    def cleanup(self) -> None:
        """The aggregator's."""
        self._fold.cleanup()

    def update_state(self, state: Any, tuples: Sequence[TridentTuple], collector: Collector) -> None:
        """One read of the index, one of rows that this life has not seen, one write."""
        if not isinstance(state, OpaqueMap):
            raise UserError("a window needs an opaque state", hint="for example SqliteState.opaque(path)")
        (stored,) = state.multi_get([self._index_key])
        index = self._config.stored(stored)
        txid = state.txid
        kept = index.add(txid, [tuple(tup) for tup in tuples], self._now())
        self._late.incr(len(tuples) - sum(len(rows) for rows in kept.values()))
        written: dict[Key, Any] = {self._row_key(slot): [list(row) for row in rows] for slot, rows in kept.items()}
        self._rows.update(kept)
        self._txids.update(dict.fromkeys(kept, txid))
        for window in index.fire():
            self._load(state, window.chunks)
            rows = window.rows(self._rows)
            for row in self._aggregated(txid, rows) if rows else ():
                collector.emit((*row, *window.bounds))
        written[self._index_key] = index.value()
        state.multi_put(list(written), list(written.values()))
        for known in self._rows.keys() - {chunk.slot for chunk in index.chunks}:
            del self._rows[known], self._txids[known]

    def _aggregated(self, txid: int, window: Rows) -> Rows:
        out: Rows = []
        value = self._fold.step(self._fold.start(txid, out), window, out)
        self._fold.end(value, out)
        return out

    def _load(self, state: OpaqueMap, chunks: Sequence[AnyChunk]) -> None:
        """Rows of former lives."""
        missing = [c for c in chunks if self._txids.get(c.slot) != c.txid]
        if missing:
            found = state.multi_get([self._row_key(chunk.slot) for chunk in missing])
            for chunk, rows in zip(missing, found, strict=True):
                self._rows[chunk.slot], self._txids[chunk.slot] = [_row(row) for row in rows], chunk.txid

    @property
    def _index_key(self) -> Key:
        return ("$window", self._partition, -1)

    def _row_key(self, slot: int) -> Key:
        return ("$window", self._partition, slot)


def _row(values: Sequence[Any]) -> Row:
    return tuple(values)
