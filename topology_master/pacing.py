"""When the coordinator of snapshots takes the next one, and when it rolls back.  Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ardea.supervision.supervisor_state import BACKOFF, SETTLED
from ardea.topology_master.snapshot_figures import Taking


@dataclass(frozen=True, slots=True)
class Pace:
    """In seconds: from one snapshot's begin to the next one's, and how long one may take."""

    interval: float
    timeout: float


class Schedule:
    """When the next snapshot may begin.

    ``next``: not before.  ``ends``: it is the last one, whether anything has moved or not.
    """

    def __init__(self, pace: Pace) -> None:
        self.next = -math.inf
        self.ends = False
        self._pace = pace
        self._quiet = self._asked = False
        self._demanded: int | None = None  # a snapshot after that one

    def hold(self, *, quiet: bool) -> None:
        """Whether spouts are held: then there is none but the one that is asked for."""
        self._quiet = quiet
        self._asked &= quiet

    def ask(self, now: float) -> None:
        """At once; if that one is abandoned, it is repeated at the usual pace."""
        if not self._asked:
            self._asked, self.next = True, now

    def demand(self, now: float, after: int) -> None:
        """One after that number, as soon as there can be one; unless it is withdrawn, until it counts."""
        self._demanded, self.next = after, now

    def withdraw(self) -> None:
        """Nobody wants that one any more."""
        self._demanded = None

    def end(self, now: float) -> None:
        """The last one, at once."""
        self.ends, self.next = True, now

    def wants(self, *, worth_it: bool, first: bool) -> bool:
        """Whether one is to begin, when it is time."""
        if self._demanded is not None and not self._quiet:
            return True
        return self.ends or (worth_it and (self._asked or first or not self._quiet))

    def restored(self, now: float, *, first: bool) -> None:
        """All tasks have their state."""
        at_once = first or self.ends or self._demanded is not None
        self.next = now if at_once else now + self._pace.interval / 2

    def committed(self, number: int) -> None:
        """What was asked for is there."""
        self._asked = False
        if self._demanded is not None and number > self._demanded:
            self._demanded = None

    def concluded(self, taken: Taking, now: float, *, first: bool) -> None:
        """That one is over; ``first``: none counts yet, and no spout emits before one does."""
        interval = self._pace.interval
        self.next = now + interval / 10 if first else max(taken.began + interval, now + interval / 2)
        if self._demanded is not None and taken.number <= self._demanded:
            self.next = now

    def over(self, began: float) -> float:
        """When one that began then has taken too long."""
        return began + self._pace.timeout


class Rollbacks:
    """When the next one may be; in a row, each waits longer, as restarts of a process do."""

    def __init__(self) -> None:
        self.due = -math.inf
        self._in_a_row = 0
        self._last = -math.inf

    def begin(self, now: float) -> None:
        """A timeline has ended."""
        if now - self._last >= SETTLED:
            self._in_a_row = 0
        self.due = now + BACKOFF[min(self._in_a_row, len(BACKOFF) - 1)]
        self._in_a_row += 1

    def progress(self) -> None:
        """What has ended timelines will not do so again: no wait after the next one to end."""
        self._in_a_row = 0

    def over(self, now: float) -> None:
        """The next timeline has all its state."""
        self._last = now
