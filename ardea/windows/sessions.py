"""Sessions: all rows of a key that are less than a gap apart.

(key, stamp of its first row) -> [stamp of its last row, value, whether it was seen on time]
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ardea.windows.kinds import Session
from ardea.windows.open_windows import AT_ONCE, Seen, Table, Time, window


class _Due(NamedTuple):
    """In order; ``number`` decides between equal times.  A session with rows since then is due later.

    ``stamp`` lies in the session, whose first row may have come later.
    """

    at: int
    number: int
    key: Any
    stamp: int


class Sessions:
    """Of one task."""

    def __init__(self, kind: Session, table: Table) -> None:
        self._table, self._fold = table, kind.fold
        self._gap, self._allowed = kind.gap_us, kind.lateness_us
        self._starts: dict[Any, list[int]] = {}  # of the sessions of a key, in order
        self._due: list[_Due] = []
        self._expected: dict[tuple[Any, int], _Due] = {}  # of each session; what else is due is void
        self._numbers = itertools.count()
        self._late: dict[tuple[Any, int], None] = {}  # sessions that were seen on time, and have new rows
        for key, start in table:
            self._starts.setdefault(key, []).append(start)
            self._expect(key, start, None)
        for starts in self._starts.values():
            starts.sort()

    def _expect(self, key: Any, start: int, due: _Due | None) -> None:
        """``due``: what there is of the session already; it will do, unless the session is due before."""
        at = self._over(key, start)
        if due is None or at < due.at:
            due = _Due(at, next(self._numbers), key, start)
            heapq.heappush(self._due, due)
        self._expected[key, start] = due

    def _over(self, key: Any, start: int) -> int:
        last, _, seen = self._table[key, start]
        return int(last + self._gap + (self._allowed if seen else 0))

    # --- rows -------------------------------------------------------------------------------------------------

    def add(self, keys: Sequence[Any], stamps: Any, items: Sequence[Any], time: Time) -> Sequence[int]:
        """See :class:`ardea.windows.open_windows.OpenWindows`, as for all of these."""
        return [
            place
            for place, (key, stamp, item) in enumerate(zip(keys, stamps.tolist(), items, strict=True))
            if not self._put(key, stamp, item, time)
        ]

    def _put(self, key: Any, stamp: int, item: Any, time: Time) -> bool:
        """Whether a row is in a session; else it is late."""
        gap, table, merge = self._gap, self._table, self._fold.merge
        starts = self._starts.get(key, [])
        joined = [start for start in starts if start < stamp + gap and stamp < table[key, start][0] + gap]
        if not joined and stamp + gap + self._allowed <= time:
            return False
        first, last = stamp, stamp
        value: Any = None
        for start in joined:
            end, one, _ = table[key, start]
            value = one if value is None else merge(value, one)
            first, last = min(first, start), max(last, end)
            self._late.pop((key, start), None)
        # One that is due and was not seen yet is seen in its turn, with this row.
        seen = last + gap <= time and (not joined or any(table[key, start][2] for start in joined))
        value = self._with(value, joined, stamp, item)
        due = min([self._expected.pop((key, start)) for start in joined], default=None)
        for start in joined:
            if start != first:
                del table[key, start]
        table[key, first] = [last, value, seen]
        self._starts[key] = sorted([*(start for start in starts if start not in joined), first])
        self._expect(key, first, due)
        if seen:
            self._late[key, first] = None
        return True

    def _with(self, value: Any, joined: list[int], stamp: int, item: Any) -> Any:
        """A value with one more row, which may be the first."""
        fold = self._fold
        if not joined:
            return fold.put(fold.zero(), item)
        if stamp < joined[0]:
            return fold.merge(fold.put(fold.zero(), item), value)
        return fold.put(value, item)

    def at_once(self) -> Iterator[Seen]:
        late, self._late = self._late, {}
        for key, start in late:
            yield self._look(key, start, "late")

    def _look(self, key: Any, start: int, firing: Any) -> Seen:
        last, value, _ = self._table[key, start]
        if self._allowed or firing != "on time":  # later rows may change it
            value = self._fold.copied(value)
        return Seen(window(start, last + self._gap, firing), [key], [self._fold.result(value)])

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Time:
        while self._due:
            due = self._due[0]
            start = self._session(due)
            if start is None:
                heapq.heappop(self._due)
                continue
            at = self._over(due.key, start)
            if at == due.at:
                return at
            self._expected[due.key, start] = later = _Due(at, *due[1:])
            heapq.heapreplace(self._due, later)
        return math.inf

    def _session(self, due: _Due) -> int | None:
        """Where it starts; None: it is gone, or is due by another."""
        starts = self._starts.get(due.key, ())
        place = bisect.bisect_right(starts, due.stamp) - 1
        return starts[place] if place >= 0 and self._expected[due.key, starts[place]] is due else None

    def due(self, time: Time) -> bool:
        return self.next <= time and bool(self._due)

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:  # noqa: ARG002 -- one
        if not self.due(time):
            return None
        due = self._due[0]
        key, start = due.key, self._session(due)
        assert start is not None
        last, value, seen = self._table[key, start]
        found = None if seen else self._look(key, start, "on time")
        if self._allowed and not seen:
            self._table[key, start] = [last, value, True]
        else:
            self._forget(key, start)
        return found

    def _forget(self, key: Any, start: int) -> None:
        del self._table[key, start], self._expected[key, start]
        starts = self._starts[key]
        starts.remove(start)
        if not starts:
            del self._starts[key]

    # --- early ------------------------------------------------------------------------------------------------

    def unseen(self, keys: Sequence[Any], stamps: Any, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        """By the first stamp of the session: all of its rows are one firing."""
        for key, stamp in zip(keys, stamps.tolist(), strict=True):
            for start in self._starts.get(key, ()):
                if start <= stamp <= self._table[key, start][0]:
                    yield start, key

    def open(self, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        return ((start, key) for key, starts in self._starts.items() for start in starts)

    def early(self, windows: Sequence[tuple[Any, Any]]) -> Iterator[Seen]:
        """A session is found by any of its stamps."""
        found: dict[tuple[Any, int], None] = {}
        for stamp, key in windows:
            for start in self._starts.get(key, ()):
                last, _, seen = self._table[key, start]
                if start <= stamp <= last and not seen:
                    found[key, start] = None
        for key, start in found:
            yield self._look(key, start, "early")
