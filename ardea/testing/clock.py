"""Simulated time: events in order of their time, and the seed decides between those of one moment."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from functools import partial

Action = Callable[[], object]


class Timeline:
    """The one clock of a simulated cluster.  ``now`` is in seconds since its start."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self._ties = random.Random(f"ties of {seed}")
        self._count = itertools.count()
        self._events: list[tuple[float, float, int, Action]] = []

    def at(self, time: float, action: Action) -> None:
        """Calls ``action`` at ``time``; at once, but after the present event, if that has passed."""
        heapq.heappush(self._events, (max(time, self.now), self._ties.random(), next(self._count), action))

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
            self._time = max(time, self._timeline.now)
            self._timeline.at(self._time, partial(self._ring, self._time))

    def cancel(self) -> None:
        """Does not ring any more."""
        self._time = math.inf

    def _ring(self, time: float) -> None:
        if time == self._time:
            self._time = math.inf
            if self._timeline.now < self._held:
                self.set(self._held)
            else:
                self._action()
