"""Sessions: all rows of a key that are less than a gap apart.

(key, stamp of its first row) -> [stamp of its last row, value, whether it was seen on time]
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ardea.windows.kinds import Session
from ardea.windows.open_windows import AT_ONCE, Seen, Table, Time, window


class _Due(NamedTuple):
    """In order; ``number`` decides between equal times.  It is over if the session has got rows since."""

    at: int
    number: int
    key: Any
    start: int


class Sessions:
    """Of one task."""

    def __init__(self, kind: Session, table: Table) -> None:
        self._table, self._fold = table, kind.fold
        self._gap, self._allowed = kind.gap_us, kind.lateness_us
        self._starts: dict[Any, list[int]] = {}  # of the sessions of a key, in order
        self._due: list[_Due] = []
        self._numbers = itertools.count()
        self._late: dict[tuple[Any, int], None] = {}  # sessions that were seen on time, and have new rows
        for key, start in table:
            self._starts.setdefault(key, []).append(start)
            self._expect(key, start)
        for starts in self._starts.values():
            starts.sort()

    def _expect(self, key: Any, start: int) -> None:
        last, _, seen = self._table[key, start]
        heapq.heappush(
            self._due, _Due(last + self._gap + (self._allowed if seen else 0), next(self._numbers), key, start)
        )

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
        for start in joined:
            if start != first:
                del table[key, start]
        table[key, first] = [last, value, seen]
        self._starts[key] = sorted([*(start for start in starts if start not in joined), first])
        self._expect(key, first)
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
        return Seen(window(start, last + self._gap, firing), [key], [self._fold.result(value)])

    # --- time -------------------------------------------------------------------------------------------------

    @property
    def next(self) -> Time:
        while self._due and not self._counts(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0].at if self._due else math.inf

    def _counts(self, due: _Due) -> bool:
        """Whether it is still the end of that session."""
        if due.start not in self._starts.get(due.key, ()):
            return False
        last, _, seen = self._table[due.key, due.start]
        return bool(due.at == last + self._gap + (self._allowed if seen else 0))

    def due(self, time: Time) -> bool:
        return self.next <= time and bool(self._due)

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:  # noqa: ARG002 -- one
        if not self.due(time):
            return None
        due = heapq.heappop(self._due)
        key, start = due.key, due.start
        last, value, seen = self._table[key, start]
        found = None if seen else self._look(key, start, "on time")
        if self._allowed and not seen:
            self._table[key, start] = [last, value, True]
            self._expect(key, start)
        else:
            self._forget(key, start)
        return found

    def _forget(self, key: Any, start: int) -> None:
        del self._table[key, start]
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
