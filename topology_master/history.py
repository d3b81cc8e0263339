"""Samples of the last fifteen minutes, in arrays of a fixed size (docs/console.md, History).  Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence

from ardea.metrics import Samples
from ardea.metrics.samples import FIELDS, KEPT

EVERY = 5.0
"""Seconds between two samples, unless there are too many tasks."""
MOST_BYTES = 12_000_000
"""All values together."""
_WIDTH = len(FIELDS)
_VALUE = array("f").itemsize
_DIGITS = 6


class History:
    """Rings of equal length, one for each name, all at the same place; ``interval``: seconds between two samples."""

    def __init__(self, now: float, wall: float, *, every: float = EVERY, most_bytes: int = MOST_BYTES) -> None:
        """Keeps nothing yet.

        Args:
            now: steady seconds, on the clock of :meth:`add`.
            wall: the same moment in Unix seconds.
            every: the least interval.
            most_bytes: of all values; a name has one sample at least, whatever that is.
        """
        self.interval = every
        self._begun, self._shift = wall, wall - now
        self._every, self._most_bytes = every, most_bytes
        self._slots = int(KEPT / every)
        self._times: list[float] = []  # of the samples kept, the oldest first
        self._next = 0  # the place of the next sample in every ring
        self._rings: dict[str, array[float]] = {}
        self._due = now

    @property
    def bytes(self) -> int:
        """All values that are kept."""
        return sum(len(ring) for ring in self._rings.values()) * _VALUE

    def due(self, now: float) -> bool:
        """Whether it is time for a sample."""
        return now >= self._due

    def add(self, now: float, rows: Mapping[str, Sequence[float]]) -> None:
        """A sample of each name; names that are missing are forgotten.

        Args:
            now: steady seconds, later than before.
            rows: by name, a value for each of ``FIELDS``; NaN: it is not known.
        """
        self._fit(len(rows))
        self._due = max(self._due + self.interval, now + self.interval / 2)
        slots, place = self._slots, self._next
        for gone in self._rings.keys() - rows.keys():
            del self._rings[gone]
        for name, row in rows.items():
            ring = self._rings.get(name)
            if ring is None:
                ring = self._rings[name] = array("f", [math.nan]) * (slots * _WIDTH)
            ring[place * _WIDTH : (place + 1) * _WIDTH] = array("f", row)
        self._times = [*self._times, round(now + self._shift, 3)][-slots:]
        self._next = (place + 1) % slots

    def samples(self, names: Iterable[str], since: float = 0.0) -> Samples:
        """Those later than ``since``, in Unix seconds, of the names that there are."""
        first = next((i for i, at in enumerate(self._times) if at > since), len(self._times))
        places = self._places[first:]
        series = {name: _columns(self._rings[name], places) for name in names if name in self._rings}
        return Samples(round(self._begun, 3), self.interval, self._times[first:], series)

    @property
    def _places(self) -> list[int]:
        """In the rings, of the samples kept, the oldest first."""
        count, slots = len(self._times), self._slots
        return [(self._next - count + i) % slots for i in range(count)]

    def _fit(self, names: int) -> None:
        """The least interval with which so many names have room; of older samples those stay that have room, too."""
        interval = self._every
        while names * int(KEPT / interval) * _WIDTH * _VALUE > self._most_bytes and interval * 2 <= KEPT:
            interval *= 2
        if interval == self.interval:
            return
        places = self._places
        keep = [*range(len(places) - 1, -1, -max(1, int(interval / self.interval)))][::-1]
        slots = int(KEPT / interval)
        keep = keep[-slots:]
        for name, ring in self._rings.items():
            fresh = array("f", [math.nan]) * (slots * _WIDTH)
            for place, kept in enumerate(keep):
                old = places[kept] * _WIDTH
                fresh[place * _WIDTH : (place + 1) * _WIDTH] = ring[old : old + _WIDTH]
            self._rings[name] = fresh
        self._times = [self._times[kept] for kept in keep]
        self.interval, self._slots, self._next = interval, slots, len(keep) % slots


def _columns(ring: Sequence[float], places: Sequence[int]) -> dict[str, list[float | None]]:
    return {field: [_short(ring[place * _WIDTH + number]) for place in places] for number, field in enumerate(FIELDS)}


def _short(value: float) -> float | None:
    """A kept value has no more digits."""
    if value == 0.0:
        return 0.0
    return None if math.isnan(value) else float(f"{value:.{_DIGITS}g}")
