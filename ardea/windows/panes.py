"""Tumbling and sliding windows: rows are kept in panes, of which each window has one or several.

A pane is the greatest common divisor of a window's length and of what is between two begins: no window begins or ends
inside it.  So a row is added once, however many windows it is in.

    (key, pane's begin) -> value        (key, None) -> end of the last window of the key that was seen on time

The latter is there where a pane outlives a window that it is in: after a restart nothing is seen twice.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np

from ardea.protocol.arrow import arrow
from ardea.windows.folds import Groups
from ardea.windows.grid import LARGEST, Grid
from ardea.windows.kinds import Regular
from ardea.windows.open_windows import AT_ONCE, Keyed, Seen, Table, Time, window

SEE, CLEAN = 0, 1


class _Due(NamedTuple):
    """In order; ``at``: the end of a window that is to be seen, or when the pane that begins at ``pane`` is over."""

    at: int
    what: int
    pane: int


class Panes:
    """Of one task."""

    def __init__(self, kind: Regular, table: Table, time: Time) -> None:
        self._table, self._fold = table, kind.fold
        self._grid, self._of = Grid.of(kind), kind.panes
        self._keys: dict[int, set[Any]] = {}  # those with rows, by pane
        self._seen: dict[Any, int] = {}  # as the table has it
        self._due: list[_Due] = []
        self._ends: set[int] = set()  # of windows that are among those
        self._present: _Due | None = None  # what is under way, of these keys
        self._left: list[Any] = []
        self._late: dict[int, dict[Any, None]] = {}  # end of a window -> keys with new rows
        self._restore(time)

    def _restore(self, time: Time) -> None:
        for key, pane in self._table:
            if pane is None:
                self._seen[key] = self._table[key, None]
            else:
                self._keys.setdefault(pane, set()).add(key)
        # Whether a pane is a window, and is gone with it: none is there that a version with allowed lateness has seen.
        self._simple = self._grid.pane == self._grid.size and not self._grid.allowed and not self._seen
        # Keys of a former task whose time was further on have seen more than is over by now.
        self._ahead: Time = max(self._seen.values(), default=-math.inf)
        for pane, keys in self._keys.items():
            self._expect(pane, min(time, min(self._seen.get(key, -LARGEST) for key in keys)))

    # --- rows -------------------------------------------------------------------------------------------------

    def add(self, keys: Sequence[Any], stamps: Any, items: Sequence[Any], time: Time) -> Sequence[int]:
        """See :class:`ardea.windows.open_windows.OpenWindows`, as for all of these."""
        panes = self._of(stamps)
        found = [int(panes[0])] if (panes == panes[0]).all() else np.unique(panes).tolist()
        late: list[int] = []
        if self._grid.over(found[0]) <= max(time, self._ahead):
            there, late = self._taken(keys, panes, time)
            keys, items, panes = list(compress(keys, there)), list(compress(items, there)), panes[there]
            found = np.unique(panes).tolist()
        if len(found) == 1:
            with self._adding({found[0]: keys}, time):
                self._fold.put_all(self._table, zip(keys, repeat(found[0]), strict=False), items)
        elif found:
            with self._adding({pane: list(compress(keys, panes == pane)) for pane in found}, time):
                self._fold.put_all(self._table, zip(keys, panes.tolist(), strict=True), items)
        return late

    def _taken(self, keys: Iterable[Any], panes: Any, time: Time) -> tuple[Any, list[int]]:
        """Which rows a window takes, and the places of those that are late; ``keys``: of each."""
        late = panes <= self._grid.last_late(time)
        if self._ahead > time:
            over, pairs = self._grid.over, zip(keys, panes.tolist(), strict=True)
            late |= np.array([over(pane) <= self._seen.get(key, -LARGEST) for key, pane in pairs], dtype=np.bool_)
        return ~late, np.flatnonzero(late).tolist()

    @contextlib.contextmanager
    def _adding(self, keys: Mapping[int, Sequence[Any]], time: Time) -> Iterator[None]:
        """Rows of these keys, by pane.  A fold that raises has not added those after: their keys are in no window."""
        for pane, some in keys.items():
            if pane not in self._keys:
                self._keys[pane] = set()
                self._expect(pane, self._closed(time))
            self._keys[pane].update(some)
        try:
            yield
        except BaseException:
            for pane in keys:
                here = self._keys[pane]
                here.intersection_update([key for key in here if (key, pane) in self._table])
            raise
        finally:
            for pane, some in keys.items():
                if self._grid.ends(pane)[0] <= max(time, self._ahead):
                    self._put_late(pane, some, time)

    def add_columns(self, keys: Keyed, stamps: Any, columns: Any, time: Time) -> Sequence[int]:
        """Rows of a record batch, of which each is in one pane; returns the places of those that are late."""
        panes = self._of(stamps)
        taken, late = self._taken((keys.keys[place] for place in keys.places), panes, time)
        there = np.flatnonzero(taken)
        if len(there):
            found, place = np.unique(panes[there], return_inverse=True)
            groups, places = np.unique(keys.places[there] * len(found) + place, return_inverse=True)
            pairs = [(keys.keys[group // len(found)], int(found[group % len(found)])) for group in groups.tolist()]
            some = columns if len(there) == len(panes) else columns.take(arrow().array(there))
            self._merge(pairs, self._fold.parts(some, Groups(places, len(pairs))), time)
        return late

    def add_parts(self, keys: Sequence[Any], stamps: Any, parts: Sequence[Any], time: Time) -> Sequence[int]:
        """Values of several rows, each in the pane of its stamp; returns the places of those that are late."""
        panes = self._of(stamps)
        there, late = self._taken(keys, panes, time)
        pairs = list(zip(compress(keys, there), panes[there].tolist(), strict=True))
        self._merge(pairs, compress(parts, there), time)
        return late

    def _merge(self, pairs: Sequence[tuple[Any, int]], parts: Iterable[Any], time: Time) -> None:
        """Values, by key and pane."""
        by_pane: dict[int, list[Any]] = {}
        for key, pane in pairs:
            by_pane.setdefault(pane, []).append(key)
        table, merge = self._table, self._fold.merge
        with self._adding(by_pane, time):
            for pair, part in zip(pairs, parts, strict=True):
                table[pair] = merge(table[pair], part)

    def _expect(self, pane: int, closed: Time) -> None:
        """Windows that have the pane, and it itself, become due; up to there all have been seen."""
        for end in self._grid.ends(pane):
            if end > closed and end not in self._ends:
                self._ends.add(end)
                heapq.heappush(self._due, _Due(end, SEE, 0))
        if not self._simple:
            heapq.heappush(self._due, _Due(self._grid.over(pane), CLEAN, pane))

    def _put_late(self, pane: int, keys: Iterable[Any], time: Time) -> None:
        """The watermark has passed the ends of some windows of the pane: they are late there, or too late."""
        keys = [key for key in dict.fromkeys(keys) if key in self._keys[pane]]
        closed, seen = self._closed(time), self._seen
        under_way = self._present.at if self._present is not None and self._present.what == SEE else None
        left = set(self._left)
        for end in self._grid.ends(pane, self._grid.end_by(max(time, self._ahead))):
            if end <= closed:
                late = keys
            elif end == under_way:
                late = [key for key in keys if key not in left]
            else:
                late = [key for key in keys if seen.get(key, -LARGEST) >= end]
            for key in late:
                if end + self._grid.allowed > max(time, seen.get(key, -LARGEST)):
                    self._late.setdefault(end, {})[key] = None
                if seen.get(key, -LARGEST) < end:
                    self._mark(key, end)

    def _closed(self, time: Time) -> Time:
        """Up to there all windows have been seen by all keys: of what is due by now some may be left."""
        first = self._present or next(iter(self._due), None)
        if first is None:
            return time
        return min(time, first.at if first.what == CLEAN else first.at - 1)  # a pane is over after what ends with it

    def _mark(self, key: Any, end: int) -> None:
        self._seen[key] = self._table[key, None] = end

    def at_once(self) -> Iterator[Seen]:
        late, self._late = self._late, {}
        for end, keys in sorted(late.items()):
            panes = [found for pane in self._grid.panes(end) if (found := self._keys.get(pane))]
            # Where a fold has raised they wait for the next rows, and their pane may be gone.
            if there := [key for key in keys if any(key in found for found in panes)]:
                yield self._look(end, there, "late")

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Time:
        if self._present is not None:
            return self._present.at
        return self._due[0].at if self._due else math.inf

    def due(self, time: Time) -> bool:
        return self._present is not None or bool(self._due and self._due[0].at <= time)

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:
        if not self.due(time):
            return None
        if self._present is None:
            self._present = due = heapq.heappop(self._due)
            self._left = list(self._keys_to_see(due.at) if due.what == SEE else self._keys.get(due.pane, ()))
        due, keys = self._present, self._left[-most:]
        del self._left[-most:]
        seen = None
        if due.what == SEE:
            seen = self._see(due.at, keys)
        else:
            self._clean(due.pane, keys)
        if not self._left:
            self._present = None
            self._ends.discard(due.at if due.what == SEE else -LARGEST)
            if due.what == CLEAN or self._simple:
                self._keys.pop(due.pane if due.what == CLEAN else due.at - self._grid.size, None)
        return seen

    def _keys_to_see(self, end: int) -> Iterable[Any]:
        keys = set().union(*(self._keys.get(pane, ()) for pane in self._grid.panes(end)))
        return keys if not self._seen else [key for key in keys if self._seen.get(key, -LARGEST) < end]

    def _see(self, end: int, keys: list[Any]) -> Seen | None:
        if not keys:
            return None
        if self._simple:
            pane = end - self._grid.size
            values = self._table.take_many(list(zip(keys, repeat(pane), strict=False)))
            self._keys[pane].difference_update(keys)
            return Seen(window(pane, end, "on time"), keys, list(map(self._fold.result, values)))
        for key in keys:
            self._mark(key, end)
        return self._look(end, keys, "on time")

    def _look(self, end: int, keys: Sequence[Any], firing: Any) -> Seen:
        """The window as it is now, whatever becomes of its panes; each key has rows in it."""
        table, merge, copied, start = self._table, self._fold.merge, self._fold.copied, end - self._grid.size
        if self._grid.pane == self._grid.size:
            values = [copied(table[key, start]) for key in keys]
        else:
            values = []
            panes = [(pane, found) for pane in self._grid.panes(end) if (found := self._keys.get(pane))]
            for key in keys:
                parts = [table[key, pane] for pane, found in panes if key in found]
                value = copied(parts[0])
                for part in parts[1:]:
                    merged = merge(value, part)
                    value = copied(part) if merged is part else merged
                values.append(value)
        return Seen(window(start, end, firing), keys, list(map(self._fold.result, values)))

    def _clean(self, pane: int, keys: list[Any]) -> None:
        self._table.take_many(list(zip(keys, repeat(pane), strict=False)))
        here = self._keys[pane]
        here.difference_update(keys)
        others = [found for found in self._keys.values() if found]
        gone = [key for key in keys if key in self._seen and not any(key in found for found in others)]
        self._table.take_many(list(zip(gone, repeat(None), strict=False)))
        for key in gone:
            del self._seen[key]

    # --- early ------------------------------------------------------------------------------------------------

    def unseen(self, keys: Sequence[Any], stamps: Any, time: Time) -> Iterator[tuple[Any, Any]]:
        panes = self._of(stamps).tolist()
        for key, pane in zip(keys, panes, strict=True):
            for end in self._grid.ends(pane):
                if end > time:
                    yield end, key

    def open(self, time: Time) -> Iterator[tuple[Any, Any]]:
        for pane, keys in self._keys.items():
            for end in self._grid.ends(pane):
                if end > time:
                    yield from ((end, key) for key in keys)

    def early(self, windows: Sequence[tuple[Any, Any]]) -> Iterator[Seen]:
        by_end: dict[int, list[Any]] = {}
        for end, key in windows:
            unseen = end in self._ends and self._seen.get(key, -LARGEST) < end
            if unseen and any(key in self._keys.get(pane, ()) for pane in self._grid.panes(end)):
                by_end.setdefault(end, []).append(key)
        for end, keys in sorted(by_end.items()):
            yield self._look(end, keys, "early")
