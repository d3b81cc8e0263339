"""The last events of one thing: a link, a task, a container or a tuple tree.  Errors and verbs print them."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

KEPT = 12
"""Events; what happened before is forgotten."""


class Event(NamedTuple):
    """``at``: seconds on the teller's clock.  ``times``: equal events in a row; ``at`` is that of the last one."""

    at: float
    what: str
    times: int = 1


class Story:
    """The last events, the oldest first."""

    __slots__ = ("events",)

    def __init__(self, kept: int = KEPT) -> None:
        self.events: deque[Event] = deque(maxlen=kept)

    def tell(self, at: float, what: str) -> None:
        """Something happened; what happens again and again takes one place."""
        if self.events and self.events[-1].what == what:
            self.events[-1] = Event(at, what, self.events[-1].times + 1)
        else:
            self.events.append(Event(at, what))

    def lines(self, now: float) -> list[str]:
        """``12.3 s ago: registered at 10.0.0.7:4001 (3 times)``."""
        return [line(now - event.at, event.what, event.times) for event in self.events]


def line(ago: float, what: str, times: int) -> str:
    """One event; ``ago`` in seconds."""
    return f"{ago:.1f} s ago: {what}" + (f" ({times} times)" if times > 1 else "")
