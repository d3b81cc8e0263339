"""When a run is hopeless.  Pure: it is told what the master and the supervisors say, and answers with a reason.

`ardea run` gives up; a topology that was submitted does so only until it runs, and then goes on trying.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ardea.errors import ExitCode
from ardea.health.processes import called, deaths, said, together
from ardea.plan.names import MASTER_CONTAINER
from ardea.scheduler.control import Status
from ardea.supervision.records import Exit

PATIENCE = 30.0
HOPELESS_FAILURES = 100
HOPELESS_ATTEMPTS = 5
"""Failures of each open row, where few rows would need minutes of back-off to fail a hundred times."""
FRUITLESS_LIVES = 3
VAIN_LIVES = 5
SHORT = 30.0
"""Seconds within which so many ends of a process that runs no user code are too many."""


class Cause(NamedTuple):
    """Why a run ends; ``culprit``: see :class:`~ardea.state.records.ExecutionState`."""

    reason: str
    culprit: str = ""


class NothingAcked:
    """A hundred tuples failed, or all that are open five times over, and none was acked for so long."""

    def __init__(self, patience: float = PATIENCE, failures: int = HOPELESS_FAILURES) -> None:
        """``patience`` in seconds; 0: never gives up."""
        self._patience, self._failures = patience, failures
        self._acked = -1
        self._since = 0.0
        self._failed_then = 0

    def observe(self, now: float, acked: int, failed: int, pending: int) -> Cause | None:
        """The cause to give up, if there is one.

        A sum that falls is that of a new master, which has not been told all yet: from there it is counted anew.

        Args:
            now: seconds, steady.
            acked: trees that the spouts saw completed since the topology began.
            failed: those that failed, timed out or were lost.
            pending: rows that are open, or wait to be sent again; without any, only the hundred count.
        """
        if acked != self._acked or failed <= self._failed_then:
            self._acked, self._since, self._failed_then = acked, now, failed
        failures = failed - self._failed_then
        enough = min(self._failures, HOPELESS_ATTEMPTS * pending or self._failures)
        if not self._patience or failures < enough or now - self._since < self._patience:
            return None
        return Cause(f"{failures:,} tuples failed and none was acked for {now - self._since:.0f} s")


class DiesInVain:
    """A task dies again and again, and nothing goes on for so long; whether it has ever worked or not.

    Only deaths that belong together count: rows that nobody tracks may have gone on between others.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        """``patience`` in seconds; 0: never gives up."""
        self._patience = patience
        self._progress: tuple[int, str] | None = None
        self._since = 0.0

    def observe(
        self, now: float, progress: tuple[int, str], exits: Mapping[str, Sequence[Exit]], tasks: Collection[str]
    ) -> Cause | None:
        """The cause to give up, if there is one.

        Args:
            now: seconds since 1970, as the ends have them.
            progress: trees that the spouts saw completed, and the number of the snapshot that counts.
            exits: the ends of each process, oldest first.
            tasks: the names that are tasks.
        """
        if progress != self._progress:
            self._progress, self._since = progress, now
        if not self._patience or now - self._since < self._patience:
            return None
        for name in tasks:
            bad = [end for end in together(exits.get(name, ()), now) if end.time >= self._since]
            if len(bad) >= VAIN_LIVES:
                return Cause(f"{name} died {len(bad)} times and no tuple was acked meanwhile: {said(bad[-1])}", name)
        return None


class NothingDone:
    """A process dies again and again; a task, without ever having emitted or processed a tuple.

    Who has worked is remembered, for a new master knows only what it has been told since.
    """

    def __init__(self) -> None:
        self._worked: set[str] = set()

    def observe(
        self, exits: Mapping[str, Sequence[Exit]], tasks: Collection[str], worked: Collection[str]
    ) -> Cause | None:
        """The cause to give up, if there is one.

        Args:
            exits: the ends of each process, oldest first.
            tasks: the names that are tasks.
            worked: those of them that are known to have emitted or processed a tuple: what is wrong with them may pass.
        """
        self._worked.update(worked)
        for name, ends in exits.items():
            if name in self._worked:
                continue
            bad = deaths(ends)[-FRUITLESS_LIVES:]
            if name not in tasks:
                bad = [end for end in bad if end.code is not None]
            if len(bad) < FRUITLESS_LIVES or (name not in tasks and bad[-1].time - bad[0].time > SHORT):
                continue
            so_far = " before it emitted or processed anything" if name in tasks else ""
            return Cause(f"{name} died {FRUITLESS_LIVES} times{so_far}: {said(bad[-1])}", name)
        return None


class HopelessRun:
    """Whether one run is to be given up, by all of these rules."""

    def __init__(self, give_up: float, *, patient: bool) -> None:
        """No rule has been asked yet.

        Args:
            give_up: seconds without an ack after which failures end the run; 0: never.
            patient: once the run has come up it is never given up.
        """
        self._give_up, self._patient = give_up, patient
        self._nothing_done = NothingDone()
        self._updated = False  # by the last look
        self._begin(-math.inf)
        self.came_up = False  # every container has registered, and every task has reported, at least once

    def _begin(self, since_1970: float) -> None:
        """What was before counts no more."""
        self._nothing_acked, self._dies_in_vain = NothingAcked(self._give_up), DiesInVain(self._give_up)
        self._since = since_1970

    def heard(self, status: Status) -> None:
        """What the master says."""
        self.came_up = self.came_up or status.complete

    def observe(
        self,
        now: float,
        since_1970: float,
        status: Status | None,
        exits: Mapping[str, Sequence[Exit]],
        tasks: Collection[str],
        spouts: Collection[str],
    ) -> Cause | None:
        """The cause to give up, if there is one.

        Args:
            now: seconds, steady.
            since_1970: the same by the machine's clock.
            status: the master's last; None: it has said nothing.
            exits: the ends of each process, oldest first.
            tasks: the names that are tasks.
            spouts: the components that are spouts.
        """
        if self._patient and self.came_up:
            return None
        former, self._updated = self._updated, bool(status and status.update and status.update.running)
        if self._updated or former:
            self._begin(since_1970)
        if self._updated:
            return None  # a version that does not come up is put back
        exits = {name: [end for end in ends if end.time >= self._since] for name, ends in exits.items()}
        totals = [each for name, each in (status.components if status else {}).items() if name in spouts]
        failed, acked = sum(t.failed + t.timed_out + t.lost for t in totals), sum(t.acked for t in totals)
        worked = {p.process for p in (status.processes if status else ()) if p.totals.emitted or p.totals.executed}
        cause = self._nothing_acked.observe(now, acked, failed, sum(t.pending for t in totals))
        if cause and status is not None and status.erring:
            cause = Cause(f"{cause.reason}; the last error: {status.errors[-1]}", status.erring[-1])
        snapshot = status.snapshots.last if status and status.snapshots else None
        progress = acked, snapshot.number if snapshot else ""
        cause = cause or self._dies_in_vain.observe(since_1970, progress, exits, tasks)
        cause = cause or self._nothing_done.observe(exits, tasks, worked)
        return Cause(f"given up: {cause.reason}", cause.culprit) if cause else None


def hopeless_start(status: Status) -> Cause | None:
    """Why a topology that has never been complete is given up: a process dies again and again, and has done nothing.

    Masters do not count: who asks has found one that acts.
    """
    if status.came_up or (status.update is not None and status.update.running):
        return None
    worked = {p.process for p in status.processes if p.totals.emitted or p.totals.executed}
    for row in status.supervised:
        if row.crash_loop and row.container != MASTER_CONTAINER and row.name not in worked:
            who, said_last = called(row), row.crash_loop.partition(": ")[2]
            return Cause(f"given up: {who} died {row.deaths} times before it ever worked: {said_last}", who)
    return None


def permanent(exits: Mapping[str, Sequence[Exit]]) -> Cause | None:
    """Why a process ended for good (exit code 78), if one did: the first.  ``exits``: the ends of each process."""
    ended = [(end, name) for name, ends in exits.items() for end in ends if end.code == ExitCode.PERMANENT]
    if not ended:
        return None
    first, name = min(ended, key=lambda each: each[0].time)
    return Cause(f"{first.name} cannot go on: {said(first)}", name)
