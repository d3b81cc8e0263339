"""From an emit to the gateway: what spouts and bolts share of it."""

from __future__ import annotations

import math
from typing import Protocol

from ardea.errors import ArdeaError
from ardea.heron_instance.buffers import StreamBuffer, only_buffer
from ardea.heron_instance.dispatch import Dispatch, Origins
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.lifecycle import Lifecycle
from ardea.heron_instance.long_calls import Interruptible, UserCode
from ardea.heron_instance.output import TaskOutput
from ardea.heron_instance.reporter import Reporter


class Emitted(Interruptible, Protocol):
    """What a component has emitted."""

    @property
    def unsent(self) -> bool:
        """Whether anything waits for a flush."""

    def send(self) -> None:
        """Sends all of it."""

    def flush_rows(self) -> None:
        """Sends the rows; after the end, gives them up."""


class Sending:
    """Of one task.  ``only`` is the buffer that an emit may append to directly, if there is one."""

    def __init__(
        self,
        env: Environment,
        task_output: TaskOutput,
        dispatch: Dispatch,
        reporter: Reporter,
        user_code: UserCode,
        lifecycle: Lifecycle,
    ) -> None:
        self._env, self._lifecycle = env, lifecycle
        self._dispatch = dispatch
        self._reporter = reporter
        self._user_code = user_code
        self._flushing = user_code.flushing
        self.only = only_buffer(task_output.buffers)

    def flush(self, emitted: Emitted, now: float, *, idle: bool = False, force: bool = False) -> float:
        """Flushes if it is time to; returns when it will be (infinity: nothing waits).

        ``idle``: nothing is at hand that could add to it.
        """
        if not emitted.unsent:
            return math.inf
        due = self._flushing.due(now, idle=idle)
        if now < due and not force:
            return due
        emitted.send()
        self._flushing.flushed(now, self._env.clock())
        return math.inf

    def flush_rows(self, origins: Origins, part: StreamBuffer | None = None) -> int:
        """Sends rows, all or ``part`` of them; after the end nobody would take them.  Returns how many were dropped."""
        if not self._reporter.markers.closed:
            self._dispatch.flush(origins, part)
            return 0
        rows = self._dispatch.drop()
        if rows:
            self._reporter.error = (
                f"{self._env.task.name}: {rows:,} tuples were emitted in close(), behind the end of the stream; a bolt "
                "emits its last ones in end_of_input(), a spout before finish()"
            )
        return rows

    def overflow(self, emitted: Emitted) -> None:
        """Inside one long call: sends what was emitted, and waits while too much is held.

        In ``close()`` it does not wait: no room comes any more, and the author's code is not cut short for that.
        """
        user_code, output, clock = self._user_code, self._env.output, self._env.clock
        with user_code.lock:
            emitted.absorb()
            began = clock()
            emitted.send()
            started = clock()
            user_code.turns += 1
            self._flushing.flushed(began, started)
            limit = self._env.settings.max_held_bytes
            while not self._lifecycle.closed and output.held_bytes > limit and not output.wait_room(limit, 1.0):
                user_code.turns += 1
            self._env.instruments.spent.emit_blocked.value += max(0.0, clock() - started)

    @property
    def may_send_inside(self) -> bool:
        """Whether rows may leave in the middle of a call: too many wait for credit, or nobody would take them."""
        held = self._env.output.held_bytes
        return not self._reporter.markers.closed and held <= self._env.settings.max_held_bytes

    def refuse(self, error: ArdeaError, origin: str) -> None:
        """A row that cannot be sent: logged with its origin."""
        self._reporter.error = f"{error.message} ({origin})"
        self._env.instruments.exception(error)
        hint = f"; {error.hint}" if error.hint else ""
        self._env.component.logger.error("%s (%s)%s", error.message, origin, hint)
