"""Where regular windows and their panes begin and end, in whole microseconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from ardea.windows.kinds import Regular
from ardea.windows.open_windows import Time

LARGEST = 1 << 62
"""Beyond all times."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Of one kind of windows.

    Args:
        size: of a window.
        every: from one begin to the next.
        offset: of the first begin at or after 0.
        pane: the length of one.
        allowed: for so long after a window's end rows of it are taken.
    """

    size: int
    every: int
    offset: int
    pane: int
    allowed: int

    @classmethod
    def of(cls, kind: Regular) -> Self:
        """That of the kind."""
        return cls(kind.size_us, kind.every_us, kind.offset_us, kind.pane_us, kind.lateness_us)

    def ends(self, pane: int, until: int = LARGEST) -> range:
        """Of the windows that the pane is in, up to there."""
        first = (pane - self.size - self.offset) // self.every * self.every + self.every + self.size + self.offset
        return range(first, min(self._last_end(pane), until) + 1, self.every)

    def panes(self, end: int) -> range:
        """Those of the window that ends there."""
        return range(end - self.size, end, self.pane)

    def end_by(self, time: Time) -> int:
        """The end of the last window that is over by then."""
        if math.isinf(time):
            return LARGEST if time > 0 else -LARGEST
        shift = self.size + self.offset
        return (int(time) - shift) // self.every * self.every + shift

    def over(self, pane: int) -> int:
        """When no row of the pane is taken any more."""
        return self._last_end(pane) + self.allowed

    def last_late(self, time: Time) -> int:
        """The last pane that is over."""
        last = self.end_by(time - self.allowed) - self.size  # the begin of the last window that is over
        return last + self.every - self.pane

    def _last_end(self, pane: int) -> int:
        return (pane - self.offset) // self.every * self.every + self.size + self.offset
