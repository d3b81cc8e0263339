"""Rows of two sides that belong together in pairs: interval and window joins."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from typing import TypeAlias

from ardea.joins.kept import AT, LEFT, MICROS, PAIRED, VALUES, Found, Kept, Row, seconds, stamp_of

Span: TypeAlias = Callable[[int, int], tuple[int, int]]
"""Of a side and a stamp: the first and the last stamp of the other side that fit."""


class Pairs:
    """A pair is found as the second row comes; a row leaves when the watermark is above all stamps that fit.

    ``alone``: whether rows of the left, and of the right, are told that belong to nobody.
    """

    def __init__(self, span: Span, alone: tuple[bool, bool]) -> None:
        self._span, self._alone = span, alone

    def came(self, kept: Kept, side: int, row: Row, now: float) -> Iterator[Found]:  # noqa: ARG002
        """See :class:`Machine`, as for all of these."""
        low, high = self._span(side, row[AT])
        others = kept[1 - side]
        fitting = others[bisect_left(others, low, key=stamp_of) : bisect_right(others, high, key=stamp_of)]
        for other in fitting:
            left, right = (row, other) if side == LEFT else (other, row)
            yield Found(left[VALUES], right[VALUES], max(row[AT], other[AT]) / MICROS)
        for other in fitting:
            other[PAIRED] = row[PAIRED] = True
        insort(kept[side], row, key=stamp_of)

    def passed(self, kept: Kept, now: float) -> Iterator[Found]:
        """Those that are alone are told."""
        for side, rows in enumerate(kept):
            gone = 0
            while gone < len(rows) and (over := self._over(side, rows[gone])) <= now:
                row = rows[gone]
                if self._alone[side] and not row[PAIRED]:
                    at = max(over, row[AT] / MICROS)
                    yield Found(row[VALUES], None, at) if side == LEFT else Found(None, row[VALUES], at)
                gone += 1
            del rows[:gone]

    def due(self, kept: Kept) -> float:
        """The first row of a side leaves first."""
        return min((self._over(side, rows[0]) for side, rows in enumerate(kept) if rows), default=math.inf)

    def _over(self, side: int, row: Row) -> float:
        """The watermark at which nobody comes any more who would fit."""
        return seconds(self._span(side, row[AT])[1] + 1)


def interval(before: int, after: int) -> Span:
    """Right ones from so many microseconds before a left one to so many after it."""

    def span(side: int, at: int) -> tuple[int, int]:
        return (at - before, at + after) if side == LEFT else (at - after, at + before)

    return span


def window(size: int, offset: int) -> Span:
    """Those of the same stretch of so many microseconds."""

    def span(_: int, at: int) -> tuple[int, int]:
        start = at - (at - offset) % size
        return start, start + size - 1

    return span
