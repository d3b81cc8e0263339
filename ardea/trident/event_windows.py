"""Windows by the times in tuples, of the rows of a partition.  Pure.

A transaction's rows are in one slot, each after its stamp; those far ahead are in another, as they stay for long.
The watermark follows the newest stamp of all rows so far, and is kept as the number of the first window that is not
complete.  A window is complete when the watermark is at its end; a row is late when all windows that have its time are
complete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from ardea.errors import TopologyError, UserError, printable
from ardea.trident.tuples import Row, Rows
from ardea.units import duration
from ardea.watermarks import DAY
from ardea.windows.folds import Rows as AllRows
from ardea.windows.kinds import MICROS, Regular
from ardea.windows.stamps import micros

AHEAD = round(DAY * MICROS)
"""A stamp that is further ahead of the machine's clock says nothing about time, but its row is in its windows."""


@dataclass(frozen=True, slots=True)
class EventWindowConfig:
    """Windows of event time: which, how late rows may be, in microseconds, and the fields of their bounds."""

    windows: Regular
    lateness: int
    bounds: tuple[str, ...] = ()

    @classmethod
    def of(cls, windows: Any, lateness: float | str, bounds: tuple[str, ...]) -> Self:
        """Raises TopologyError: this is none."""
        if not isinstance(windows, Regular) or windows.on is None:
            raise TopologyError([f"window({windows!r}): it takes Tumbling or Sliding of ardea.windows, with on=FIELD"])
        if windows.early is not None or windows.lateness_us or not isinstance(windows.fold, AllRows):
            instead = "how late rows may be says window(lateness=...)"
            what = f"window({windows!r}): the aggregator sees each window once: no early, allowed_lateness, fold"
            raise TopologyError([f"{what}; {instead}"])
        if len(bounds) not in (0, 2):
            raise TopologyError([f"window(bounds={list(bounds)}): two fields, of a window's start and end, or none"])
        try:
            seconds = 0.0 if lateness in (0, 0.0) else duration(lateness)
        except ValueError as error:
            raise TopologyError([f"window(lateness={lateness!r}): lateness takes {error}"]) from None
        return cls(windows, round(seconds * MICROS), bounds)

    @property
    def ahead(self) -> tuple[str, ...]:
        """Fields that come before the aggregator's."""
        return (self.windows.stamps.field,)

    def stored(self, value: Any) -> EventIndex:
        """What a partition knew when it stored that."""
        if value is None:
            return EventIndex(self, [])
        first, chunks = value
        return EventIndex(self, [EventChunk(*chunk) for chunk in chunks], first)


class EventChunk(NamedTuple):
    """Rows that one transaction added: ``panes`` are the last windows, by number, of each of them."""

    slot: int
    txid: int
    panes: list[int]


class EventWindow(NamedTuple):
    """A complete one: the rows of ``chunks`` from ``start`` up to, and without, ``end``."""

    chunks: list[EventChunk]
    start: int
    end: int
    bounds: tuple[float, ...]

    def rows(self, of: dict[int, Rows]) -> Rows:
        """Without their stamps; ``of``: slot -> rows."""
        return [row[1:] for c in self.chunks for row in of[c.slot] if self.start <= row[0] < self.end]


@dataclass(slots=True)
class EventIndex:
    """``first``: windows from this one on, by number, are not complete; None: nothing is known of time.

    ``newest`` is the newest stamp of this transaction that says something about time, in microseconds.
    """

    config: EventWindowConfig
    chunks: list[EventChunk]
    first: int | None = None
    newest: int | None = None

    def value(self) -> Any:
        """To be stored."""
        return [self.first, [list(chunk) for chunk in self.chunks]]

    def add(self, txid: int, rows: Sequence[Row], now: float) -> dict[int, Rows]:
        """A transaction commits rows, which begin with their stamps; returns those that are not late, by slot.

        Raises UserError: a stamp is none.
        """
        if not rows:
            return {}
        windows = self.config.windows
        stamps, bad = micros([row[0] for row in rows], windows.stamps)
        if len(bad):
            shown = printable(repr(rows[bad[0]][0]))
            raise UserError(
                f"a window by the time in field {windows.on}: {shown} is no time",
                hint="filter() such tuples out; numbers of another unit: unit='ms' of the window",
            )
        panes = (stamps - windows.offset_us) // windows.every_us
        sure = stamps <= round(now * MICROS) + AHEAD
        if sure.any():
            self.newest = int(stamps[sure].max())
        open_ones = np.ones(len(rows), bool) if self.first is None else panes >= self.first
        kept: dict[int, Rows] = {}
        for places in (np.flatnonzero(open_ones & sure), np.flatnonzero(open_ones & ~sure)):
            if len(places):
                slot = free_slot([chunk.slot for chunk in self.chunks])
                self.chunks.append(EventChunk(slot, txid, np.unique(panes[places]).tolist()))
                pairs = zip(places.tolist(), stamps[places].tolist(), strict=True)
                kept[slot] = [(stamp, *rows[at][1:]) for at, stamp in pairs]
        return kept

    def fire(self) -> Iterator[EventWindow]:
        """The windows that are complete and may have rows, by their ends, and forgets what no more is needed."""
        if self.newest is None:
            return
        windows = self.config.windows
        every, size, offset = windows.every_us, windows.size_us, windows.offset_us
        passed = (self.newest - self.config.lateness - size - offset) // every + 1  # the first that is not
        for number in self._with_panes(passed, -(-size // every)):
            start = number * every + offset
            last = (start + size - 1 - offset) // every
            chunks = [c for c in self.chunks if any(number <= pane <= last for pane in c.panes)]
            bounds = (start / MICROS, (start + size) / MICROS) if self.config.bounds else ()
            yield EventWindow(chunks, start, start + size, bounds)
        self.first = passed if self.first is None else max(self.first, passed)
        self.chunks = [c for c in self.chunks if c.panes[-1] >= self.first]

    def _with_panes(self, passed: int, each: int) -> list[int]:
        """Numbers of windows, below ``passed``, that may have rows: each row is in at most ``each``."""
        panes = {pane for chunk in self.chunks for pane in chunk.panes}
        first = min(panes, default=0) - each if self.first is None else self.first
        return sorted({n for pane in panes for n in range(max(first, pane - each + 1), min(pane + 1, passed))})


def free_slot(used: Sequence[int]) -> int:
    """The first one that no row is in."""
    taken = set(used)  # of thousands of chunks
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)
