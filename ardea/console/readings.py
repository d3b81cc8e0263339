"""What is known of each thing that can be asked for, since when, and whom to ask next.  Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ardea.errors import ArdeaError, Unreachable

LOOKED_AT = 5.0
"""Seconds for which a thing counts as looked at, when somebody has looked at it."""
SILENT = 5.0
"""Seconds without an answer after which a thing is stale."""
FORGOTTEN = 60.0
"""Seconds after which what nobody looks at is forgotten."""
ENDED = 10
"""So many times as seldom is asked for what is over."""
UNDER_WAY = 8
"""Asks at a time."""


class State(enum.StrEnum):
    """Of what is shown: docs/console.md, "States of what is shown"."""

    UNKNOWN = "unknown"
    LIVE = "live"
    STALE = "stale"
    OVER = "over"


class Key(NamedTuple):
    """What is asked for: ``kind`` names the question, ``topology`` is an id; empty: it is about no single one."""

    kind: str
    topology: str = ""


class Answer(NamedTuple):
    """``trouble``: why part of ``said`` is older; ``over``: the topology has ended, and nothing changes any more.

    ``slower``: how many times the pace's seconds pass until the next ask, because this one was dear.
    """

    said: Any
    trouble: str = ""
    over: bool = False
    slower: float = 1.0


class Look(NamedTuple):
    """``said`` was whole at ``good`` (steady seconds); None: it never was.  ``error``: why it is stale."""

    state: State
    said: Any = None
    good: float | None = None
    error: ArdeaError | None = None


class Pace(NamedTuple):
    """Seconds from one ask to the next: while somebody looks, and while nobody does.

    ``first``: all others together have half of the asks at a time, and come after these.  ``most``: things of this kind
    that are known at a time; what was looked at longest ago makes room.
    """

    looked_at: float = 1.0
    otherwise: float = math.inf
    first: bool = False
    most: int = 1000


@dataclass(slots=True)
class _Known:
    wanted: float = -math.inf
    since: float = -math.inf  # when somebody began to look, and nobody did before
    asked: float = -math.inf
    under_way: bool = False
    said: Any = None
    good: float | None = None
    error: ArdeaError | None = None
    over: bool = False
    slower: float = 1.0


class Readings:
    """All that is known.  Times are steady seconds.

    Args:
        paces: of each kind.  Kinds whose pace has no end are asked as soon as this begins, and are never forgotten.
    """

    def __init__(self, paces: Mapping[str, Pace]) -> None:
        self._paces = paces
        self._known = {Key(kind): _Known() for kind, pace in paces.items() if pace.otherwise < math.inf}

    def want(self, key: Key, now: float) -> bool:
        """Somebody looks at it; whether nobody did before."""
        if key not in self._known:
            self._make_room(key.kind)
        known = self._known.setdefault(key, _Known())
        is_new = now - known.wanted >= LOOKED_AT
        if is_new:
            known.since = now
        known.wanted = max(known.wanted, now)
        return is_new

    def _make_room(self, kind: str) -> None:
        alike = [key for key in self._known if key.kind == kind]
        if len(alike) >= self._paces[kind].most:
            free = [key for key in alike if not self._known[key].under_way]
            for key in sorted(free, key=lambda each: self._known[each].wanted)[
                : len(alike) - self._paces[kind].most + 1
            ]:
                del self._known[key]

    def due(self, now: float) -> list[tuple[Key, Any]]:
        """Whom to ask now, with what they have said last; they count as asked."""
        for key in [key for key, known in self._known.items() if self._is_forgotten(key, known, now)]:
            del self._known[key]
        chosen = []
        for first, most in ((True, UNDER_WAY), (False, UNDER_WAY // 2)):
            under_way = [key for key, known in self._known.items() if known.under_way]
            alike = sum(self._paces[key.kind].first is first for key in under_way)
            ready = sorted((known.asked, key) for key, known in self._known.items() if self._is_due(key, first, now))
            for _, key in ready[: max(0, min(UNDER_WAY - len(under_way), most - alike))]:
                self._known[key].asked, self._known[key].under_way = now, True
                chosen.append(key)
        return [(key, self._known[key].said) for key in chosen]

    def _is_due(self, key: Key, first: bool, now: float) -> bool:
        return self._paces[key.kind].first is first and self._due_at(key, self._known[key], now) <= now

    def wait(self, now: float) -> float:
        """Seconds until somebody is to be asked; infinite: an answer or a look comes first."""
        return max(0.0, min((self._due_at(key, known, now) for key, known in self._known.items()), default=now) - now)

    def answered(self, key: Key, now: float, answer: Answer) -> None:
        """What has come of an ask."""
        known = self._known.setdefault(key, _Known())
        was_over = known.over
        known.under_way, known.said, known.over, known.slower = False, answer.said, answer.over, answer.slower
        known.error = Unreachable(answer.trouble) if answer.trouble else None
        if not answer.trouble and not (was_over and answer.over):
            known.good = now

    def failed(self, key: Key, error: ArdeaError, *, over: bool = False) -> None:
        """Nothing has; what was known stays.  ``over``: it is gone."""
        known = self._known.setdefault(key, _Known())
        known.under_way, known.error, known.over = False, error, over

    def look(self, key: Key, now: float) -> Look:
        """What is known."""
        if (known := self._known.get(key)) is None:
            return Look(State.UNKNOWN)
        error = known.error
        if error is None and not known.over and (waited := self._waited(key, known, now)) >= SILENT:
            error = Unreachable(f"no answer for {waited:.0f} s")
        if known.over:
            return Look(State.OVER, known.said, known.good, error)
        if known.said is None:
            return Look(State.UNKNOWN, None, None, error)
        return Look(State.LIVE if error is None else State.STALE, known.said, known.good, error)

    def _waited(self, key: Key, known: _Known, now: float) -> float:
        """Seconds for which an answer is late: of an ask under way, or of one that others keep from being made."""
        late = now - known.asked if known.under_way else 0.0
        if now - known.wanted < LOOKED_AT:
            heard = max(known.since, -math.inf if known.good is None else known.good)
            late = max(late, now - heard - self._paces[key.kind].looked_at * known.slower)
        return late

    def is_fresh(self, key: Key, now: float) -> bool:
        """Whether an ask has come to its end that was made within the pace of those who look, or it is over."""
        known = self._known.get(key)
        if known is None or known.under_way:
            return False
        return known.over or now - known.asked < self._paces[key.kind].looked_at * known.slower

    def _due_at(self, key: Key, known: _Known, now: float) -> float:
        if known.under_way:
            return math.inf
        pace = self._paces[key.kind]
        looked_at = now - known.wanted < LOOKED_AT
        often = pace.looked_at * (ENDED if known.over else known.slower)
        return known.asked + (often if looked_at else pace.otherwise)

    def _is_forgotten(self, key: Key, known: _Known, now: float) -> bool:
        if known.under_way or self._paces[key.kind].otherwise < math.inf:
            return False
        return now - known.wanted >= FORGOTTEN
