"""Metrics that user code registers through its context, under the names Storm's and Heron's users know.

self.lines = context.register_metric("lines", CountMetric(), 60)
self.lines.incr()
"""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Mapping
from typing import Any, Protocol

MAX_KEYS = 1000
"""Keys that one MultiCountMetric exports; the counts of all further ones add up under OTHER."""
OTHER = "__other"
LONGEST = 128
"""Characters of a name or key."""

_ODD = re.compile(r"[^\w.:/-]")


def sanitize(name: str) -> str:
    """A name of at most 128 letters, digits and ``_.:/-``; a longer one ends with a checksum of all of it."""
    name = _ODD.sub("_", name)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 9]}-{zlib.crc32(name.encode()):08x}"


class UserMetric:
    """What the registry asks of each kind; subclasses give counts or a value."""

    def counts(self) -> Mapping[str, int | float]:
        """Cumulative counts by key."""
        return {}

    def current(self) -> float | None:
        """A value that goes up and down; None: nothing to report."""
        return None


class CountMetric(UserMetric):
    """A counter."""

    def __init__(self) -> None:
        self.value: int | float = 0

    def incr(self, to_add: int | float = 1) -> None:
        """Adds; a negative amount is refused, because a counter only grows."""
        self.value += _growth(to_add)

    def counts(self) -> Mapping[str, int | float]:
        """One count, under the empty key."""
        return {"": self.value}


class MultiCountMetric(UserMetric):
    """A counter a key.  Keys become label values: keep them few (see MAX_KEYS)."""

    def __init__(self) -> None:
        self._counts: dict[str, int | float] = {}

    def incr(self, key: str, to_add: int | float = 1) -> None:
        """Adds to the key's count; a negative amount is refused."""
        to_add = _growth(to_add)
        key = sanitize(str(key))
        if key not in self._counts and len(self._counts) >= MAX_KEYS:
            key = OTHER
        self._counts[key] = self._counts.get(key, 0) + to_add

    def counts(self) -> Mapping[str, int | float]:
        """The counts so far."""
        return self._counts.copy()


class AssignableMetric(UserMetric):
    """The number last assigned."""

    def __init__(self, value: float = 0) -> None:
        self.value = value

    def update(self, value: float) -> None:
        """Assigns."""
        self.value = value

    def current(self) -> float:
        """The number last assigned."""
        return self.value


class Reducer(Protocol):
    """Folds values into a state and a state into a number."""

    def init(self) -> Any:
        """The state before any value."""
        ...

    def reduce(self, state: Any, value: Any) -> Any:
        """The state after one more value."""
        ...

    def extract(self, state: Any) -> float | None:
        """The number to report; None: nothing."""
        ...


class MeanReducer:
    """The arithmetic mean."""

    def init(self) -> tuple[float, int]:
        """Sum and number of values."""
        return (0.0, 0)

    def reduce(self, state: tuple[float, int], value: float) -> tuple[float, int]:
        """Adds one value."""
        return (state[0] + value, state[1] + 1)

    def extract(self, state: tuple[float, int]) -> float | None:
        """None without values."""
        return state[0] / state[1] if state[1] else None


class ReducedMetric(UserMetric):
    """Values folded by a reducer; each snapshot reports those since the last one and begins again."""

    def __init__(self, reducer: Reducer) -> None:
        self._reducer = reducer
        self._state = reducer.init()
        self._lock = threading.Lock()  # the executor updates, the gateway takes snapshots

    def update(self, value: Any) -> None:
        """Folds in one value."""
        with self._lock:
            self._state = self._reducer.reduce(self._state, value)

    def current(self) -> float | None:
        """The reduction of the values since the last call."""
        with self._lock:
            state, self._state = self._state, self._reducer.init()
        return self._reducer.extract(state)


def _growth(to_add: int | float) -> int | float:
    if to_add < 0:
        raise ValueError(f"a count only grows, yet {to_add} was to be added; use AssignableMetric for what also falls")
    return to_add
