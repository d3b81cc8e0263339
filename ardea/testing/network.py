"""The simulated network: every lane between two processes is first in, first out, with a delay of its own.

Processes are named as people name them: ``master``, ``manager-1``, ``count-0``; ``state`` is the state manager.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from ardea.protocol.lane import Lane
from ardea.testing.clock import Timeline

LATENCY = 50e-6
"""Seconds; each message takes up to twice this, and never overtakes another one of its lane."""


class Network:
    """Whoever sends; ``lost`` counts what never arrived."""

    def __init__(self, timeline: Timeline, seed: int) -> None:
        self.lost = 0
        self._timeline = timeline
        self._random = random.Random(f"network of {seed}")
        self._last: dict[tuple[str, str, Lane], float] = {}
        self._cut: set[frozenset[str]] = set()
        self._delays: dict[frozenset[str], float] = {}
        self._drops: dict[frozenset[str], float] = {}

    def send(self, source: str, target: str, lane: Lane, deliver: Callable[[], None]) -> None:
        """Calls ``deliver`` when the message arrives; never, if it is lost."""
        pair = frozenset((source, target))
        if self._random.random() < self._drops.get(pair, 0.0):
            self.lost += 1
            return
        delay = LATENCY * (1.0 + self._random.random()) + self._delays.get(pair, 0.0)
        way = (source, target, lane)
        # The next representable time at least: equal ones would be a tie, and their order a matter of chance.
        arrival = max(self._timeline.now + delay, math.nextafter(self._last.get(way, 0.0), math.inf))
        self._last[way] = arrival

        def arrive() -> None:
            if pair in self._cut:
                self.lost += 1
            else:
                deliver()

        self._timeline.at(arrival, arrive)

    def cut(self, one: str, other: str) -> None:
        """Loses all that is on its way between the two, and all that they send, until :meth:`heal`."""
        self._cut.add(frozenset((one, other)))

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Slows the link down; 0 ends that."""
        self._delays[frozenset((one, other))] = seconds

    def drop(self, one: str, other: str, probability: float) -> None:
        """Loses that part of the messages; 0 ends that."""
        self._drops[frozenset((one, other))] = probability

    def is_cut(self, one: str, other: str) -> bool:
        """Whether nothing arrives now."""
        return frozenset((one, other)) in self._cut

    def delay_of(self, one: str, other: str) -> float:
        """By how much the link is slower now."""
        return self._delays.get(frozenset((one, other)), 0.0)

    def heal(self, one: str, other: str) -> None:
        """Ends a cut, a delay and a drop."""
        pair = frozenset((one, other))
        self._cut.discard(pair)
        self._delays.pop(pair, None)
        self._drops.pop(pair, None)
