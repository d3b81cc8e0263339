"""Health in one word, and the troubles that it stands for.  Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec


class HealthState(enum.StrEnum):
    """See docs/health.md for what each means."""

    STARTING = "STARTING"
    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    CRASHING = "CRASHING"
    UNREACHABLE = "UNREACHABLE"
    ORPHANED = "ORPHANED"


class Trouble(msgspec.Struct, frozen=True):
    """``who``: a task, a process of a container, or a container.  ``since``: Unix seconds; None: nobody knows.

    ``crashing``: it dies again and again.
    """

    who: str
    since: float | None
    why: str
    crashing: bool = False

    def line(self, now: float) -> str:
        """For people; ``now`` in Unix seconds."""
        since = "" if self.since is None else f" since {duration(now - self.since)}"
        return f"{self.who}{since}: {self.why}"


class Health(msgspec.Struct, frozen=True):
    """The word, and the troubles: who crashes comes first."""

    state: HealthState
    troubles: list[Trouble] = []

    def lines(self, now: float) -> list[str]:
        """A sentence for each trouble; ``now`` in Unix seconds."""
        return [trouble.line(now) for trouble in self.troubles]


def assessed(troubles: Iterable[Trouble], *, came_up: bool) -> Health:
    """The health of a topology that somebody keeps.

    Args:
        troubles: in any order.
        came_up: whether it was complete at least once.
    """
    ordered = sorted(troubles, key=lambda trouble: (not trouble.crashing, trouble.who))
    if ordered and ordered[0].crashing:
        return Health(HealthState.CRASHING, ordered)
    if not came_up:
        return Health(HealthState.STARTING, ordered)
    return Health(HealthState.DEGRADED if ordered else HealthState.HEALTHY, ordered)


CUT_OFF = 10.0
"""Seconds without an answer of the state manager after which a master is cut off."""


def cut_off(silence: float) -> str:
    """Why a master cannot act whose state manager has been silent for so many seconds; empty: it can."""
    if silence <= CUT_OFF:
        return ""
    return f"cut off from the topology's state: the state manager has not answered for {silence:.0f} s"


def duration(seconds: float) -> str:
    """``12 s``, ``4 min``, ``3 h``, ``2 d``."""
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172800)):
        if seconds < most:
            return f"{max(0, int(seconds / size))} {unit}"
    return f"{int(seconds / 86400)} d"
