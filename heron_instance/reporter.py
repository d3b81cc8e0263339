"""What a task says of itself: markers to the tasks that read it, reports to the master."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ardea.errors import printable
from ardea.heron_instance.broken_rows import TELL_EVERY, BrokenRows, rank
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.exception_groups import ExceptionGroups
from ardea.heron_instance.lifecycle import Lifecycle
from ardea.heron_instance.markers import Markers
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.watermarks import BoltTime, time_of
from ardea.protocol.wire_pb2 import ACTIVE, BARRIER, ENDED, MARKER, REPORT, RESTING, Header, TaskReport, TaskState


class Rows(Protocol):
    """The rows that a report counts."""

    @property
    def open_rows(self) -> int:
        """What a resting spout still waits for; 0 for a bolt."""

    @property
    def waiting_rows(self) -> int:
        """Those of them that wait to be sent again."""

    @property
    def spout_state(self) -> TaskState | None:
        """What a spout knows beyond its markers; None: nothing."""


class Reporter:
    """Of one task.

    ``given_up``: how many rows will never be sent (again).  ``broken``: a spout's.  ``time``: None where rows have
    no stamps.  ``exceptions``: of its code.
    """

    rows: Rows

    def __init__(self, env: Environment, lifecycle: Lifecycle) -> None:
        self._env = env
        self._lifecycle = lifecycle
        # Rounds of a new life lie above those of all former ones: an old report cannot match.
        self.markers = Markers(*self._neighbours, round=env.life << 32)
        self.time = time_of(env)
        self.given_up = 0
        self._given_up_at = {0: 0}  # by snapshot, of those that all may go back to
        self.broken: BrokenRows | None = None
        self.exceptions = ExceptionGroups(env.clock)
        self._error, self._error_tree = "", 0
        self._raised: tuple[str, int] | None = None  # since the master was told of one
        self._told_raised = -math.inf
        self._report: tuple[Any, ...] = ()
        self._version = 0

    @property
    def error(self) -> str:
        """The last one of its rows."""
        return self._error

    @error.setter
    def error(self, text: str) -> None:
        self._error, self._error_tree = text, 0

    def raised(self, text: str, tree: int) -> None:
        """An exception, of a row in that tree (0: in none).  The master hears of one a second."""
        if self._raised is None or rank(tree) < rank(self._raised[1]):
            self._raised = text, tree

    # --- markers ----------------------------------------------------------------------------------------------

    def rest(self) -> None:
        """Marks the rest behind all that was emitted."""
        self.markers.rest()
        self._mark()

    def marked(self, header: Header) -> bool:
        """A marker has arrived; False: it says that its source rests no longer."""
        if header.round or header.end:
            end, final = header.end, header.snapshot
            self.markers.arrived(header.source, header.source_life, header.round, end=end, final=final)
            if header.source in self.markers.ended and isinstance(self.time, BoltTime):
                self.time.ended(header.source)
            return True
        rested = self.markers.resting and not self.markers.closed
        self.markers.data(header.source)
        if rested:
            self.wake()
        return False

    def heard(self, header: Header) -> None:
        """A watermark has arrived; one of a former incarnation says nothing."""
        source, known = header.source, self.markers.lives.get(header.source, 0)
        over = source in self.markers.ended and header.source_life == known
        if isinstance(self.time, BoltTime) and header.source_life >= known and not over:
            self.time.heard(header)

    def wake(self) -> None:
        """Rests no longer, although it has sent nothing, so that its readers go on with their ticks."""
        self.markers.resting = False
        self._mark(round_=0)
        self.report()

    def end(self, final: int = 0) -> None:
        """Passes the end on, and the number of the snapshot that belongs to it."""
        self._lifecycle.ending = self.markers.closed = True
        self.markers.final = final
        self._mark()

    def learn(self, lives: Mapping[int, int], *, again: bool = False) -> None:
        """Incarnations of other tasks; ``again``: their manager has a new life."""
        markers = self.markers
        if isinstance(self.time, BoltTime):
            self.time.risen({task: lives[task] for task in markers.fresh(lives)})
        deaf = [task for task in markers.fresh(lives, again=again) if task in markers.feeds]
        if risen := [task for task, life in lives.items() if markers.risen(task, life, again=again)]:
            self._mark(risen)
        if deaf:
            self._tell_again(deaf)

    def replanned(self) -> None:
        """Other tasks may read and write now."""
        if fresh := self.markers.replanned(*self._neighbours):
            self._mark(sorted(fresh))
        if isinstance(self.time, BoltTime):
            self.time.replanned()
        self._tell_again()

    def take_over(self, former: Reporter) -> None:
        """Goes on where that of the former timeline stood: incarnations, and rounds that only rise."""
        self.markers.lives = former.markers.lives
        self.markers.round = former.markers.round
        self._version, self.given_up = former._version, former.given_up
        self._given_up_at = former._given_up_at
        self._error, self._error_tree, self._raised = former._error, former._error_tree, former._raised
        self.exceptions = former.exceptions

    def taken(self, number: int) -> None:
        """What has been given up belongs to that snapshot."""
        assert self._env.snapshots is not None
        timeline = self._env.snapshots.timeline
        last, over = (timeline.committed, timeline.snapshot), max(timeline.committed, timeline.abandoned)
        self._given_up_at = {n: rows for n, rows in self._given_up_at.items() if n in last or n > over}
        self._given_up_at[number] = self.given_up

    def put_back(self, number: int) -> None:
        """What has been given up since that snapshot comes again; of a former life's nothing is known."""
        self.given_up = self._given_up_at.get(number, self.given_up)
        self._given_up_at = {number: self.given_up}

    def manager_reborn(self) -> None:
        """The stream manager has a new life: what it knew of this task is said again."""
        if self.markers.resting or self.markers.closed:
            self._mark()
        self._tell_again()
        self._report = ()
        self.report()

    @property
    def _neighbours(self) -> tuple[frozenset[int], frozenset[int]]:
        """The tasks upstream, and those that read this one."""
        plan, component = self._env.plan, self._env.task.component
        return frozenset(plan.upstream(component)), frozenset(plan.readers(component))

    def _mark(self, targets: Iterable[int] = (), round_: int | None = None) -> None:
        """One message, for these tasks or for all that read this one; the present round unless it says another."""
        env, markers = self._env, self.markers
        if not markers.feeds:
            return
        header = Header(kind=MARKER, source=env.task.task, targets=targets, end=markers.closed, epoch=env.plan.epoch)
        header.round = markers.round if round_ is None else round_
        header.timeline, header.snapshot = env.timeline, markers.final if markers.closed else 0
        env.output.put(OutMessage(header, [], 0, 0))

    def _tell_again(self, targets: Iterable[int] = ()) -> None:
        """The last watermark, unless the end says more."""
        if self.time is not None and not self.markers.closed:
            self.time.telling.again(targets)

    def barrier(self, number: int) -> None:
        """Separates what that snapshot covers from what comes after it, for all that read this task."""
        env = self._env
        if self.markers.feeds:
            header = Header(kind=BARRIER, source=env.task.task, snapshot=number, epoch=env.plan.epoch)
            header.timeline = env.timeline
            env.output.put(OutMessage(header, [], 0, 0))

    # --- reports ----------------------------------------------------------------------------------------------

    @property
    def state(self) -> TaskState:
        """What the master is told."""
        known = self.rows.spout_state
        if known is not None:
            return known
        if self.markers.closed and (self._env.snapshots is None or self._lifecycle.closed):
            return ENDED
        return RESTING if self.markers.resting else ACTIVE

    def report(self, failure: str = "") -> None:
        """Tells the master what it does not know yet."""
        env, markers = self._env, self.markers
        now = env.clock()
        if self._raised is not None and (now - self._told_raised >= TELL_EVERY or markers.closed or failure):
            (self._error, self._error_tree), self._raised, self._told_raised = self._raised, None, now
        if env.snapshots is not None and env.commits is not None:  # in one report with the rest that follows the rows
            env.snapshots.report.owes = env.commits.intervals.owed
        content = self._content(failure)
        if content != self._report:
            self._report = content
            self._version += 1
            report = self._message(failure).SerializeToString()
            env.output.put(OutMessage(Header(kind=REPORT), [report], 0, 0))

    def _content(self, failure: str) -> tuple[Any, ...]:
        """By which one report tells itself from the next."""
        env, markers, lifecycle, rows = self._env, self.markers, self._lifecycle, self.rows
        return (
            self.state,
            markers.round,
            self._seen,
            self.given_up,
            failure,
            self._error,
            (rows.open_rows, rows.waiting_rows) if lifecycle.draining or lifecycle.hold else (),
            (env.plan.epoch, lifecycle.hold),
            self.broken.version if self.broken is not None else 0,
            self.exceptions.version(last=markers.closed or bool(failure)),
            b"" if env.snapshots is None else env.snapshots.report.SerializeToString(),
        )

    def _message(self, failure: str) -> TaskReport:
        report = TaskReport(
            task=self._env.task.task,
            state=self.state,
            round=self.markers.round,
            seen=self._seen,
            given_up=self.given_up,
            version=self._version,
            failure=printable(failure, most=2000),
            error=printable(self.error, most=2000),
            error_tree=self._error_tree,
            open=self.rows.open_rows,
            waiting=self.rows.waiting_rows,
            epoch=self._env.plan.epoch,
            hold=self._lifecycle.hold,
            raised=self.exceptions.told(),
        )
        if self.broken is not None:
            report.broken.update(self.broken.last)
        if self._env.snapshots is not None:
            report.snapshots.CopyFrom(self._env.snapshots.report)
        return report

    @property
    def _seen(self) -> int:
        """Which markers it has seen, while it rests."""
        return self.markers.seen.digest if self.markers.resting else 0
