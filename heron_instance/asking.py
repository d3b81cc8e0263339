"""When a spout is asked for more, and for how much."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import cast

from ardea.component import Spout, overrides
from ardea.heron_instance.open_rows import OpenRows
from ardea.heron_instance.runner import Parts

IDLE_EVERY = 0.1
FIRST_WAIT = 0.001
SILENCE_SHARE, LONGER = 0.01, 10.0  # a silent spout sleeps a hundredth of its silence, up to ten times the setting


class Asking:
    """Of one task.

    ``finished``: ``finish`` was called; ``reopened``: it was, and a delivered fail has ended that rest.
    """

    def __init__(self, parts: Parts, open_rows: OpenRows) -> None:
        self._parts = parts
        self._spout = cast("Spout", parts.env.component)
        self._open = open_rows
        self.finished = self.reopened = False
        self._tells_idle = overrides(type(self._spout), "idle")
        self._last_idle = 0.0  # when idle() or next_tuple() was last called
        self._per_call = math.inf  # unknown: the first turn is one call
        self._emitted_at = parts.env.clock()
        self._wait = 0.0
        self._next_call = 0.0
        only = parts.sending.only
        waiting: Callable[[], int] = (
            partial(getattr, parts.task_output, "waiting") if only is None else only.rows.values.__len__
        )
        self._ask, self.bind, self.stop = self._loop(waiting)

    def _loop(self, waiting: Callable[[], int]) -> tuple[Callable[[int], int], Callable[[], None], Callable[[], None]]:
        """Returns what calls ``next_tuple`` up to so many rows, what finds it, and what ends the present turn."""
        next_tuple: Callable[[], None]
        wanted = 0  # rows; finish(), and rows that leave inside a call, set it to none

        def ask(budget: int) -> int:
            """Calls until ``budget`` rows wait, or it is told to stop; negative: the last call emitted nothing."""
            nonlocal wanted
            wanted = budget
            calls = 0
            before = waiting()
            for calls in range(1, budget - before + 1):
                next_tuple()
                now_waiting = waiting()
                if now_waiting >= wanted:
                    break
                if now_waiting == before:
                    return -calls
                before = now_waiting
            return calls

        def bind() -> None:
            """As ``initialize`` has left it."""
            nonlocal next_tuple
            next_tuple = self._spout.next_tuple

        def stop() -> None:
            nonlocal wanted
            wanted = 0

        return ask, bind, stop

    # --- what the author says ---------------------------------------------------------------------------------

    def finish(self) -> None:
        """The author's call."""
        self._parts.user_code.check_thread()
        self.finished, self.reopened = True, False
        self.stop()

    def fail_delivered(self) -> None:
        """It ends the rest, unless the author calls ``finish`` again."""
        self.reopened = self.reopened or self.finished
        self.finished = False

    def reopen(self) -> None:
        """There may be something new after all: as after a delivered fail."""
        self.fail_delivered()
        self.soon()

    def emitted(self) -> None:
        """Rows leave."""
        self._emitted_at = self._parts.env.clock()

    @property
    def found_nothing(self) -> bool:
        """It was asked last, and emitted nothing."""
        return self._wait > 0.0

    @property
    def silent_until(self) -> float:
        """Until when it is not asked again."""
        return self._next_call

    def soon(self) -> None:
        """It may have waited for what has come."""
        self._wait = self._next_call = 0.0

    # --- the loop ---------------------------------------------------------------------------------------------

    def idle(self, now: float) -> float:
        """Calls ``idle`` if it is time to; returns when it will be."""
        if not self._tells_idle:
            return math.inf
        if now >= self._last_idle + IDLE_EVERY:
            self._last_idle = now
            with self._parts.user_code:
                self._spout.idle()
        return self._last_idle + IDLE_EVERY

    def ask(self, now: float) -> float:
        """Asks for as much as there may be; returns when to ask again."""
        if self.finished:
            return now + 1.0
        if now < self._next_call:
            return self._next_call
        parts, task_output = self._parts, self._parts.task_output
        waiting = task_output.waiting
        budget = min(self._open.budget(now), waiting + int(0.002 / self._per_call) + 1)
        if budget <= waiting:
            return self.full(now)
        before = task_output.emitted
        with parts.user_code:
            calls = self._ask(budget)
        ended = parts.env.clock()
        self._took(abs(calls), ended - now)
        self._last_idle = ended
        if calls > 0 and (task_output.emitted != before or self.finished):
            self._wait = 0.0
            return ended
        # Nothing emitted: sleep a little, and longer each time; the longer the silence, the less a little more matters.
        longest = parts.env.settings.spout_wait_ms / 1000
        longest = max(longest, min((ended - self._emitted_at) * SILENCE_SHARE, longest * LONGER))
        self._wait = min(max(self._wait * 2, FIRST_WAIT), longest)
        self._next_call = ended + self._wait
        return self._next_call

    def full(self, now: float) -> float:
        """More cannot be sent now; returns when to look again."""
        if self._parts.task_output.waiting:
            return now  # what waits leaves now, and untracked rows make room by that
        # A verdict wakes the executor.
        return self._open.congestion.full(now) if self._open.admitted(now) <= 0 else now + 1.0

    def _took(self, calls: int, seconds: float) -> None:
        if calls:
            per_call = seconds / calls
            known = self._per_call if self._per_call < math.inf else per_call
            self._per_call = known + 0.3 * (max(per_call, 1e-8) - known)
            self._parts.env.instruments.next_tuple.observe(per_call, calls)
