"""The timers of one task: a keyed state of (key, name) -> time, and the order in which they are due."""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from ardea.backends.memory import KeyedTable, Lower
from ardea.errors import EncodingError, UserError
from ardea.protocol.dict_keys import as_key
from ardea.protocol.keys import encode_key

_MOST_STALE = 1000
"""Entries of the order that are over, beyond as many as there are timers."""


def are_timers(rows: Iterable[tuple[Any, ...]]) -> bool:
    """Whether these, of a file of a snapshot, can be of timers; those that are gone have no time."""
    return all(_is_pair(key) and all(type(at) is float for at in time) for key, *time in rows)


def _is_pair(key: Any) -> bool:
    return isinstance(key, tuple | list) and len(key) == 2 and isinstance(key[1], str)


class Timer(NamedTuple):
    """In the order in which they are called; ``encoded``: the key, as keys of all types have an order so."""

    at: float
    encoded: bytes
    name: str
    key: Any


class TimerTable:
    """As the author sees it."""

    def __init__(self, lower: Lower) -> None:
        """``lower``: of (key, name)."""
        self.table = KeyedTable(lambda: None, lower)
        self.sets_none = False  # or calls that set others would never end
        self._name = lower.name
        self._order: list[Timer] | None = None  # a heap, with some that are over; None: what is there is not known yet
        self._count = 0

    def set(self, key: Any, at: float, name: str = "") -> None:
        """Has ``on_timer(name, key, at)`` called once, as soon as it is ``at``; it replaces one of that key and name.

        By event time, ``on_timer`` sets none once the watermark is infinite.

        Args:
            key: one of the task's.
            at: in seconds since 1970, as ``context.now()`` gives them.  In the past: soon.
            name: tells the timers of one key apart.

        Raises:
            UserError: the key is another task's, or ``at`` is no time.
        """
        if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) <= sys.float_info.max:
            raise UserError(f"state {self._name!r}: a timer's time is a number of seconds since 1970, not {at!r}")
        if not isinstance(name, str):
            raise UserError(f"state {self._name!r}: a timer's name is a text, not {name!r}")
        try:
            key = as_key(key)
            timer = Timer(float(at), encode_key((key,)), name, key)
        except EncodingError as error:
            raise UserError(f"state {self._name!r}: {error.message}", hint=error.hint) from error
        order = self._known()
        fresh = (key, name) not in self.table  # raises for a key of another task
        if self.sets_none:
            return
        self._count += fresh
        self.table[key, name] = timer.at
        heapq.heappush(order, timer)
        if len(order) > 2 * self._count + _MOST_STALE:
            self._order = None

    def cancel(self, key: Any, name: str = "") -> None:
        """The timer of that key and name is not called; if there is none, nothing happens.

        Raises:
            UserError: the key is another task's, as for :meth:`get`.
        """
        self._known()
        if self.table.pop((key, name), None) is not None:
            self._count -= 1

    def get(self, key: Any, name: str = "") -> float | None:
        """When the timer of that key and name is due; None: there is none."""
        found: float | None = self.table.get((key, name))
        return found

    # --- the engine's -----------------------------------------------------------------------------------------

    @property
    def next(self) -> float:
        """When one is due; infinity: there is none."""
        order = self._known()
        while order and self.table.get((order[0].key, order[0].name)) != order[0].at:
            heapq.heappop(order)
        return order[0].at if order else math.inf

    def take(self, now: float) -> Timer | None:
        """The next one that is due; it is no timer any more."""
        if self.next > now:
            return None
        timer = heapq.heappop(self._known())
        self.cancel(timer.key, timer.name)
        return timer

    def _known(self) -> list[Timer]:
        if self._order is None:
            self._order = [Timer(at, encode_key((key,)), name, key) for (key, name), at in self.table.items()]
            heapq.heapify(self._order)
            self._count = len(self._order)
        return self._order
