"""A left row belongs to what the right says of its key at one moment: as-of joins, and joins with tables."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from collections.abc import Iterator

from ardea.joins.kept import AT, LEFT, RIGHT, VALUES, Found, Kept, Row, seconds, stamp_of


class Versions:
    """By stamps: a left row waits for the watermark, and gets the last right row up to its stamp.

    ``within``: how many microseconds older it may be; None: any number.  ``alone``: whether left rows are told that
    have none.
    """

    def __init__(self, within: int | None, *, alone: bool) -> None:
        self._within, self._alone = math.inf if within is None else within, alone

    def came(self, kept: Kept, side: int, row: Row, now: float) -> Iterator[Found]:
        """See :class:`Machine`, as for all of these."""
        insort(kept[side], row, key=stamp_of)
        if side == RIGHT:
            waiting = kept[LEFT]
            self._leave(kept[RIGHT], min(now, seconds(waiting[0][AT])) if waiting else now)
        yield from ()

    def passed(self, kept: Kept, now: float) -> Iterator[Found]:
        """Left rows in the order of their stamps."""
        waiting, gone = kept[LEFT], 0
        while gone < len(waiting) and (at := seconds(waiting[gone][AT] + 1)) <= now:
            row = waiting[gone]
            version = self._version(kept[RIGHT], row[AT])
            if version is not None or self._alone:
                yield Found(row[VALUES], version and version[VALUES], at)
            gone += 1
        del waiting[:gone]
        self._leave(kept[RIGHT], now)

    def due(self, kept: Kept) -> float:
        """A left row is told, or a right one leaves."""
        waiting, versions = kept
        first = seconds(waiting[0][AT] + 1) if waiting else math.inf
        return min(first, self._over(versions, 0)) if versions else first

    def _version(self, versions: list[Row], at: int) -> Row | None:
        place = bisect_right(versions, at, key=stamp_of)
        version = versions[place - 1] if place else None
        if version is None or version[VALUES] is None or version[AT] < at - self._within:
            return None
        return version

    def _leave(self, versions: list[Row], now: float) -> None:
        gone = 0
        while gone < len(versions) and self._over(versions, gone) <= now:
            gone += 1
        del versions[:gone]

    def _over(self, versions: list[Row], place: int) -> float:
        """The watermark at which no left row can need it: there is a newer one, it is too old, or it says nothing."""
        at = versions[place][AT]
        last = at if versions[place][VALUES] is None else at + self._within
        if place + 1 < len(versions):
            last = min(last, versions[place + 1][AT])
        return seconds(last + 1)


class Latest:
    """By arrival: a left row gets what the right says at present."""

    def __init__(self, *, alone: bool) -> None:
        self._alone = alone

    def came(self, kept: Kept, side: int, row: Row, now: float) -> Iterator[Found]:  # noqa: ARG002
        """A row of the table takes the place of the former one."""
        if side == RIGHT:
            kept[RIGHT][:] = [] if row[VALUES] is None else [row]
        elif kept[RIGHT] or self._alone:
            yield Found(row[VALUES], kept[RIGHT][0][VALUES] if kept[RIGHT] else None, None)

    def passed(self, kept: Kept, now: float) -> Iterator[Found]:  # noqa: ARG002
        """Nothing waits."""
        yield from ()

    def due(self, kept: Kept) -> float:  # noqa: ARG002
        """Never."""
        return math.inf
