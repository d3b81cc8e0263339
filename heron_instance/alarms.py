"""What a bolt is called for by the clock: tick tuples, and the timers that it has set."""

from __future__ import annotations

import math
import sys
from typing import cast

from ardea.component import Bolt, overrides
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.windowing import Windowing
from ardea.keyed import states_of
from ardea.timers import Timers
from ardea.tuples import SYSTEM_COMPONENT, SYSTEM_TASK, TICK_FIELDS, TICK_STREAM, Tuple
from ardea.watermarks import NEVER
from ardea.windows.bolt import WindowBolt

_LAST = sys.float_info.max
"""No timer is later, and there is one at no time that is infinite."""


class TickBatch:
    """Where a tick tuple says it comes from."""

    component, stream, task, fields = SYSTEM_COMPONENT, TICK_STREAM, SYSTEM_TASK, TICK_FIELDS

    @staticmethod
    def id_of(index: int) -> str:
        """Ticks have a number only."""
        return f"tick:{index}"


class Alarms:
    """Of one task.  Ticks come so many seconds apart (None: there are none), and none while the task rests.

    ``any``: whether there will ever be something to do.  ``overdue``: whether timers of the clock are left that were
    due when the task began: rows come after these.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts, self._env = parts, parts.env
        self._bolt = cast("Bolt", parts.env.component)
        self._every = parts.env.settings.tick
        timers = [each for each in states_of(type(self._bolt)) if isinstance(each, Timers)]
        self._event = any(each.time == "event" for each in timers)
        self.windows = Windowing(parts, self._bolt) if isinstance(self._bolt, WindowBolt) else None
        self.any = bool(self._every or timers or self.windows is not None)
        self._waits = False  # whether windows that are over were not all seen, by the last look
        self._gives_way = -math.inf  # until then rows come first, whose turn is as long as that of windows
        self._rested = False  # whether the task was at rest before
        self._ticks = 0
        self._next_tick = math.inf
        self._began = -math.inf  # by the clock of timers
        self.overdue = False

    def begin(self, now: float) -> None:
        """The component is initialised, and has its state back; the first tick comes after as long."""
        if self._every:
            self._next_tick = now + self._every
        self._began = self._env.context.now()
        self.overdue = self._left()

    def _left(self) -> bool:
        timers = self._env.states.timers
        return timers is not None and not self._event and timers.next <= min(self._began, self._env.context.now())

    def next(self, now: float) -> float:
        """When there is something to do, by the executor's clock."""
        env, markers = self._env, self._parts.reporter.markers
        if markers.closed:
            return math.inf
        tick = math.inf if markers.resting else self._next_tick
        if self.windows is not None:
            tick = min(tick, now + self.windows.wait())
        if env.states.timers is None:
            return tick
        left = env.states.timers.next - self._time
        return min(tick, now + left) if left <= 0 or not self._event else tick

    @property
    def _time(self) -> float:
        """By which timers are due."""
        if not self._event:
            return self._env.context.now()
        return NEVER if self._bolt.watermark is None else min(self._bolt.watermark, _LAST)

    def tick(self, now: float) -> None:
        """A tick, if one is due; then the timers that it, and the rows before it, have set and that are due."""
        markers = self._parts.reporter.markers
        if now >= self._next_tick and not (markers.resting or markers.closed):
            self._next_tick = now + (self._every or math.inf)
            self._ticks += 1
            with self._parts.user_code:
                self._bolt.process_tick(Tuple((self._every,), self._ticks, TickBatch()))
            if overrides(type(self._bolt), "process_tick"):
                self._moved()
        self._catch_up()

    def passed(self) -> bool:
        """A watermark may have risen: as :meth:`fire`, for all that are due by it."""
        return (self._event or self.windows is not None) and self.fire(rows_wait=True)

    @property
    def behind(self) -> bool:
        """Whether there are windows that the watermark has passed, and that were not seen: it is not told before."""
        return self._waits

    def fire(self, *, rows_wait: bool) -> bool:
        """As many timers and windows as are due, and fit into a slice of time; no windows while it is the turn of rows.

        Returns whether the task was at rest and had some, as soon as all are done.  All timers that go by the
        watermark are called, those that windows have set too: what they emit comes ahead of it.
        """
        env = self._env
        if self._parts.reporter.markers.closed:
            self.overdue = False
            return False
        part = env.settings.slice_ms / 2000
        until = env.clock() + part
        waited = self._waits
        self._call_timers(until)
        self.overdue = self.overdue and self._left()
        if self.windows is not None and self.windows.wait() <= 0:
            self._works()
            if not rows_wait or env.clock() >= self._gives_way:
                self.windows.fire(until)
                self._gives_way = env.clock() + part
                self._catch_up()
        if self.windows is not None:  # a row may have moved the end of a session that was due
            self._waits = self.windows.behind
        rested = self._rested
        if self._waits:
            return False
        self._rested = False
        return rested or waited

    def _catch_up(self) -> None:
        """Timers by the watermark that are due when rows or windows set them: it is not told before."""
        if self._event and not self._parts.reporter.markers.closed:
            self._call_timers(math.inf)

    def _call_timers(self, until: float) -> None:
        """All that go by the watermark, which set no others where it is infinite; of others as many as fit."""
        timers = self._env.states.timers
        if timers is None or timers.next > (now := self._time):
            return
        self._works()
        timers.sets_none = now == _LAST
        while (timer := timers.take(now)) is not None:
            with self._parts.user_code:
                self._bolt.on_timer(timer.name, timer.key, timer.at)
            if self._env.clock() >= until and not self._event:
                break
        timers.sets_none = False

    def _works(self) -> None:
        """The task is not at rest, and its state changes."""
        markers = self._parts.reporter.markers
        self._rested, markers.resting = self._rested or markers.resting, False
        self._moved()

    def _moved(self) -> None:
        if self._env.snapshots is not None:
            self._env.snapshots.moved()

    def finish(self) -> None:
        """Nothing comes any more."""
        if self.windows is not None:
            with self._parts.user_code:
                self.windows.finish()
        self._catch_up()
