"""What a bolt is called for by the clock: tick tuples, and the timers that it has set."""

from __future__ import annotations

import math
from typing import cast

from ardea.component import Bolt
from ardea.heron_instance.runner import Parts
from ardea.tuples import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_FIELDS, TICK_STREAM, Tuple


class TickBatch:
    """Where a tick tuple says it comes from."""

    component, stream, task, fields = SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, TICK_FIELDS

    @staticmethod
    def id_of(index: int) -> str:
        """Ticks have a number only."""
        return f"tick:{index}"


class Alarms:
    """Of one task.  Ticks come so many seconds apart (None: there are none), and none while the task rests."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._env = parts, parts.env
        self._bolt = cast("Bolt", parts.env.component)
        self._every = parts.env.settings.tick
        self._ticks = 0
        self._next_tick = math.inf

    def begin(self, now: float) -> None:
        """The first tick comes after as long."""
        if self._every and self._next_tick is math.inf:
            self._next_tick = now + self._every

    def next(self, now: float) -> float:
        """When there is something to do, by the executor's clock."""
        env, markers = self._env, self._parts.reporter.markers
        if markers.closed:
            return math.inf
        tick = math.inf if markers.resting else self._next_tick
        return tick if env.states.timers is None else min(tick, now + env.states.timers.next - env.context.now())

    def tick(self, now: float) -> None:
        """A tick, if one is due."""
        markers = self._parts.reporter.markers
        if now < self._next_tick or markers.resting or markers.closed:
            return
        self._next_tick = now + (self._every or math.inf)
        self._ticks += 1
        with self._parts.user_code:
            self._bolt.process_tick(Tuple((self._every,), self._ticks, TickBatch()))

    def fire(self) -> bool:
        """As many timers as are due, and fit into a slice of time; whether the task was at rest and had some."""
        env, markers = self._env, self._parts.reporter.markers
        timers = env.states.timers
        if timers is None or markers.closed or timers.next > (now := env.context.now()):
            return False
        rested, markers.resting = markers.resting, False
        if env.snapshots is not None:
            env.snapshots.moved()
        until = env.clock() + env.settings.slice_ms / 2000
        while (timer := timers.take(now)) is not None:
            with self._parts.user_code:
                self._bolt.on_timer(timer.name, timer.key, timer.at)
            if env.clock() >= until:
                break
        return rested
