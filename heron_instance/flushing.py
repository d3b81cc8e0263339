"""When a task sends what waits.  Pure.

A flush costs its task, and everybody behind it, about the same for one row as for hundreds.  So no more than a share of
the time goes into flushes; what is not used is saved up, that whoever has little to do answers at once.
"""

from __future__ import annotations

import math

SHARE = 0.1
AFTER = 0.002
SAVED = 0.02


class Flushing:
    """Seconds of any clock.  ``longest``: nothing waits longer, whatever flushes cost."""

    __slots__ = ("_ended", "_longest", "_saved")

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._ended = -math.inf
        self._saved = SAVED

    def due(self, now: float, *, idle: bool) -> float:
        """When the next flush may be; ``idle``: nothing is at hand that could add to it."""
        saved = self._saved_at(now)
        if saved >= 0.0:
            return now if idle else self._ended + AFTER
        return min(now - saved / SHARE, self._ended + self._longest)

    def flushed(self, began: float, ended: float) -> None:
        """A flush took so long."""
        self._saved = self._saved_at(began) - (ended - began)
        self._ended = ended

    def _saved_at(self, now: float) -> float:
        return min(SAVED, self._saved + max(0.0, now - self._ended) * SHARE)
