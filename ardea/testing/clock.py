"""Simulated time: events in order of their time, and the seed decides between those of one moment."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable

Action = Callable[[], object]


class Timeline:
    """The one clock of a simulated cluster.  ``now`` is in seconds since its start."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self._tie = random.Random(f"ties of {seed}").random
        self._number = itertools.count().__next__
        self._events: list[tuple[float, float, int, Action]] = []

    def at(self, time: float, action: Action) -> None:
        """Calls ``action`` at ``time``; at once, but after the present event, if that has passed."""
        heapq.heappush(self._events, (max(self.now, time), self._tie(), self._number(), action))

    @property
    def next(self) -> float:
        """When something happens next; infinity if nothing will."""
        return self._events[0][0] if self._events else math.inf

    def step(self) -> None:
        """Goes on to the next event."""
        self.now, _, _, action = heapq.heappop(self._events)
        action()

    def skip(self, time: float) -> None:
        """Lets time pass in which nothing happens."""
        self.now = max(self.now, min(time, self.next))


class Alarm:
    """When somebody wants to be called next; an earlier time replaces a later one."""

    def __init__(self, timeline: Timeline, action: Action) -> None:
        self._timeline = timeline
        self._action = action
        self._time = math.inf
        self._held = 0.0

    def hold(self, until: float) -> None:
        """Does not ring before; what it would have rung for waits."""
        self._held = max(self._held, until)

    def set(self, time: float) -> None:
        """Rings at ``time``, unless it rings earlier anyway."""
        if time < self._time:
            self._time = time = max(time, self._timeline.now)
            self._timeline.at(time, self._ring)

    def cancel(self) -> None:
        """Does not ring any more."""
        self._time = math.inf

    def _ring(self) -> None:
        now = self._timeline.now
        if now == self._time:  # else an earlier one has taken its place
            self._time = math.inf
            if now < self._held:
                self.set(self._held)
            else:
                self._action()
