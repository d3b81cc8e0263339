"""Waiting for what others do, with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """Looks every so many seconds."""

    every: float
    clock: Callable[[], float]
    pause: Callable[[float], None]

    def within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        """Whether the condition comes to hold in that time; it is asked once at least."""
        deadline = self.clock() + seconds
        while not condition():
            if self.clock() >= deadline:
                return False
            self.pause(self.every)
        return True
