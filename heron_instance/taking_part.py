"""What a task does for its timeline between two slices of work: its state, what has counted, rows of a sink."""

from __future__ import annotations

import math
from typing import NoReturn

from ardea.backends.contract import ScratchError
from ardea.errors import ArdeaError
from ardea.heron_instance.commits import Commits
from ardea.heron_instance.faults import Faults
from ardea.heron_instance.runner import Parts, Runner
from ardea.heron_instance.snapshots import RollingBack, TaskSnapshots

AGAIN = 1.0
"""Seconds after which the store is asked again, and a component that could not begin is made again."""


class TakingPart:
    """Of one executor.

    ``again``: when the task tries again to have its state and to begin; ``due``: when rows of a sink are to be written;
    ``settled``: nothing that was stored waits to be merged; ``used``: the object has been given state, or is of another
    plan, so that only another one can be.
    """

    def __init__(self, snapshots: TaskSnapshots, parts: Parts, runner: Runner, faults: Faults) -> None:
        self.again, self.due = -math.inf, math.inf
        self.settled, self.used = True, False
        self._snapshots, self._runner, self._faults = snapshots, runner, faults
        self._env, self._lifecycle = parts.env, parts.lifecycle
        self._user_code, self._reporter = parts.user_code, parts.reporter
        self._committed = 0  # the last snapshot that the author has heard of
        self._waits = ""  # why rows of a sink are not outside yet

    def look(self, now: float) -> bool:
        """Whether the task takes part in the present timeline, and has its state.

        Raises:
            RollingBack: the component's timeline is over, or it cannot begin.
        """
        snapshots = self._snapshots
        snapshots.look()
        if snapshots.timeline.rolls_back and self._lifecycle.active and now >= self.again:
            if self._lifecycle.initialized or self.used:
                raise RollingBack
            self._put_back(now)
        committed = snapshots.timeline.committed
        if self._lifecycle.running and committed > self._committed:
            self._committed = committed
            with self._user_code:
                self._env.component.committed(committed)
        outside = self._env.commits is None or self._write_outside(self._env.commits, committed, now)
        if snapshots.timeline.over and self._lifecycle.running and outside:
            self._runner.over()
        self.settled = self._env.states.settle()
        self._reporter.report()
        return snapshots.timeline.works

    def _write_outside(self, commits: Commits, committed: int, now: float) -> bool:
        """Whether all rows of a sink that count are outside."""
        if self._lifecycle.running:
            waited = not commits.idle
            self.due = commits.advance(now, committed)
            if waited and commits.idle:
                self._snapshots.moved()  # the last snapshot names rows that are outside, and the next one does not
            self._snapshots.unwritten(commits.waiting, commits.oldest, commits.why)
        if commits.error != self._waits:
            self._waits = commits.error
            self._reporter.error = f"{self._env.task.name}: {commits.error}" if commits.error else ""
            if commits.error:
                self._env.component.logger.error("%s: %s", self._env.task.name, commits.error)
        return commits.idle

    def _put_back(self, now: float) -> None:
        """The state first: the author finds it in ``initialize``."""
        snapshots, self.again, self.used = self._snapshots, now + AGAIN, True
        try:
            number = snapshots.put_back(self._env.states)
        except OSError as error:
            snapshots.cannot_read(str(error))
            self._reporter.error = f"{self._env.task.name} {snapshots.report.waits}"
            if isinstance(error, ScratchError):
                raise RollingBack from error
            return
        except ArdeaError as error:
            self._cannot_use(error)
        self._env.timeline = snapshots.timeline.number
        self._reporter.put_back(number)
        try:
            self._begin(number)
        except Exception as error:
            if number and isinstance(error, ArdeaError) and error.lasts:
                self._cannot_use(error)
            if not self._faults.passes(error):
                raise
            snapshots.cannot_begin(self._faults.note(error, f"another object tries again in {AGAIN:g} s"))
            raise RollingBack from error
        self.again = -math.inf

    def _cannot_use(self, error: ArdeaError) -> NoReturn:
        """The process stays: the master puts an update back, or ends the topology."""
        self._snapshots.cannot_use(self._lifecycle.fails_topology(error))
        self._env.component.logger.error("%s", self._snapshots.report.unreadable)
        self._reporter.error = self._snapshots.report.unreadable
        raise RollingBack from error

    def _begin(self, number: int) -> None:
        self._lifecycle.initialize()
        if number:
            self._env.component.restored(number)
        self._runner.begun()
        self._runner.activated(active=True)
