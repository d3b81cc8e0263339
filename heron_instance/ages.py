"""By which clock the values of a component's states grow older: the machine's, or the task's watermark."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ardea.backends.contract import PARTS
from ardea.backends.memory import KeyedTable
from ardea.component import Component
from ardea.keyed import KeyedState
from ardea.watermarks import NEVER


class Clock(NamedTuple):
    """``now``: seconds since 1970, minus infinity before there is a time; ``stamp``: the same, 0 before that."""

    now: Callable[[], float]
    stamp: Callable[[], float]


@dataclass(slots=True)
class _Aging:
    """A table whose values grow older each so many seconds, the next time at ``next``."""

    table: KeyedTable
    now: Callable[[], float]
    every: float
    next: float = NEVER


class Ages:
    """Of one component object; ``now`` is the machine's clock."""

    def __init__(self, component: Component, now: Callable[[], float]) -> None:
        self._component = component
        self._watermark = NEVER
        self._machine = Clock(now, now)
        self._event = Clock(lambda: self._watermark, lambda: 0.0 if self._watermark == NEVER else self._watermark)
        self._each: list[_Aging] = []

    def clock(self, state: KeyedState) -> Clock:
        """The state's."""
        return self._event if state.time == "event" else self._machine

    def look(self) -> None:
        """The watermark of now counts until the next look.

        A snapshot is written after its barrier, and what it has must be that of its barrier: what is gone by a later
        watermark would be missing once all has gone back.  At the end nothing is gone any more.
        """
        watermark = self._component.watermark
        if watermark is not None and watermark < math.inf:
            self._watermark = watermark

    def add(self, state: KeyedState, table: KeyedTable) -> None:
        """Where there are no snapshots: what was written until now and then has an age from then on."""
        if state.ttl is not None:
            now, every = self.clock(state).now, state.ttl / PARTS
            self._each.append(_Aging(table, now, every, now() + every))

    def age(self) -> None:
        """Those that are due do, by which values are gone in time."""
        if self._each:
            self.look()
        for aging in self._each:
            if (now := aging.now()) >= aging.next and now > NEVER:
                aging.next = now + aging.every
                aging.table.age()
            aging.table.lower.settle()
