"""Takes snapshots of a topology, and rolls it back to the last one that counts (docs/snapshots.md).

Pure: what tasks report and who rises come in by calls; writes and orders go out through :class:`Outside`.

    EMPTY --all have reported--> RESTORING --all have put back their state--> RUNNING --it is time--> TAKING --> RUNNING
    any --somebody rose, or a task reports an error or a loss--> BROKEN --all live--> RESTORING
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from ardea.protocol.wire_pb2 import SnapshotOrder, SnapshotReport
from ardea.snapshots.manifest import Manifest
from ardea.snapshots.retention import Abandoned
from ardea.snapshots.savepoint import NUMBER
from ardea.state.records import BlameFacts, TimelineRecord
from ardea.topology_master.blame import Blame
from ardea.topology_master.living import Living
from ardea.topology_master.pacing import Pace, Rollbacks, Schedule
from ardea.topology_master.recorded import Doubts, nobody_in
from ardea.topology_master.snapshot_figures import Cause, Reason, SnapshotFigures, Taking


class Phase(enum.Enum):
    """See the module."""

    EMPTY = "no timeline has begun"
    RUNNING = "rows flow"
    TAKING = "rows flow, and a snapshot is under way"
    BROKEN = "a timeline is over, and the next one has not begun"
    RESTORING = "tasks put back their state"


class Outside(Protocol):
    """What surrounds the coordinator; ``figures`` is told what becomes of snapshots and timelines."""

    figures: SnapshotFigures

    def record(self, record: TimelineRecord) -> None:
        """Stores it under the master's term; raises Fenced when that is over."""

    def manifest(self, number: int, files: Sequence[tuple[int, SnapshotReport]]) -> None:
        """Begins to store the list of a snapshot's files, by task; :meth:`Snapshots.stored` hears of it."""

    def committed(self) -> None:
        """The snapshot whose list was stored last counts: what it does not need may go."""

    def given_up(self) -> None:
        """One more snapshot never counts: some of what lies in the store for it may go."""

    def undeclared(self) -> None:
        """The end that was declared is not to come yet: rows may come again."""

    def fail(self, reason: str, culprit: str) -> None:
        """The topology cannot go on; the culprit is a task, by name."""

    def unusable(self, reason: str, culprit: str) -> None:
        """It cannot go on with the code that it has."""

    def tell(self, task: str, what: str) -> None:
        """What a task, by name, has done to the timeline that is over."""

    def order(self, order: SnapshotOrder) -> None:
        """To all tasks, in place of the one before."""


class Snapshots:
    """One master's coordinator.

    ``places``: the container of each task.  ``record``: what a former master has stored; None: nothing yet.
    """

    def __init__(
        self,
        term: int,
        places: Mapping[int, int],
        pace: Pace,
        outside: Outside,
        record: TimelineRecord | None,
        blame: Blame,
    ) -> None:
        self.phase = Phase.EMPTY if record is None else Phase.RESTORING if record.tasks else Phase.BROKEN
        self.record = TimelineRecord() if record is None else record
        self.taking: Taking | None = None
        self.schedule, self.blame = Schedule(pace), blame
        self._living = Living(places)
        self._outside, self._figures = outside, outside.figures
        self._counter = term << 32
        self._since = self.record.timeline, self._counter  # what predecessors may have begun: timeline, and snapshot
        self._given_up = self._counter if record else 0  # whatever a former master has begun
        self._reports: dict[int, SnapshotReport] = {}
        self._moved = 0  # the last snapshot since which a task has done something by itself
        self._rollbacks = Rollbacks()
        self._doubts = Doubts()
        if record is not None:
            self._order()

    # --- what the store has -----------------------------------------------------------------------------------

    def surveyed(self, newest: Manifest | None, now: float, error: str = "") -> None:
        """See :meth:`ardea.topology_master.recorded.Doubts.answered`; whether the end has come, the list knows best."""
        found = self._doubts.answered(self.record, newest, error)
        if found.tasks and found is not self.record:
            self._outside.record(found)
            self.record = found
            self.blame.committed()
            self._order()
        elif found is not self.record:
            self._counter = self._given_up = max(self._counter, found.committed)
            self._lose(found, now)
        if self.phase is Phase.EMPTY:
            self._undeclare()
        self._check_heard(now)

    def begins(self, number: int, now: float) -> None:
        """There is no record, and was no snapshot: that one was copied into the store, for the topology to begin from.

        It is stored as an update stores it, a timeline that nobody works in.
        """
        record = nobody_in(0, number)
        self._outside.record(record)
        self.record, self.phase, self._doubts.surveyed = record, Phase.BROKEN, True
        self._undeclare()
        self._check_heard(now)

    @property
    def works(self) -> bool:
        """Whether there is a record, or a task has been heard of that works in a timeline whose record is lost."""
        return self.phase is not Phase.EMPTY or self._doubts.heard > 0

    @property
    def asks(self) -> bool:
        """Whether nothing goes on before the store has said which snapshot is the newest."""
        over = self.phase in (Phase.EMPTY, Phase.BROKEN) or self._doubts.heard > self.record.timeline
        return over and not self._doubts.surveyed

    def _check_heard(self, now: float) -> None:
        found = self._doubts.contradicted(self.record)
        if isinstance(found, str):
            self._outside.fail(found, "")
        elif found is not None:
            self._lose(found, now)

    def _lose(self, record: TimelineRecord, now: float) -> None:
        """The topology goes on from that record, in place of one that is lost."""
        if self.phase is not Phase.BROKEN and record.committed != NUMBER:
            self._figures.broken(Cause.RECORD, 0, "", now)  # that one a master has copied, and maybe not recorded
        self._abandon(Reason.ROLLBACK, now, self._figures.cause)
        self._since = record.timeline, self._counter
        self.record, self.phase = record, Phase.BROKEN
        self._undeclare()

    # --- who rises --------------------------------------------------------------------------------------------

    def task_rose(self, task: int, life: int, now: float) -> None:
        """A task is heard of, in this life."""
        if self._living.task_rose(task, life) and self.record.tasks.get(task) != life:
            self._break(Cause.TASK, task, now)

    def manager_met(self, container: int, now: float) -> None:
        """A stream manager says hello in another life; which one, it says when it registers.

        What its tasks report may come in between.
        """
        if self._living.manager_met(container):
            self._break(Cause.MANAGER, container, now)

    def manager_rose(self, container: int, life: int, now: float) -> None:
        """A stream manager is heard of, in this life."""
        if self._living.manager_rose(container, life) and self.record.managers.get(container) != life:
            self._break(Cause.MANAGER, container, now)
        self._restored(now)

    # --- what tasks report ------------------------------------------------------------------------------------

    def reported(self, task: int, life: int, report: SnapshotReport, now: float) -> None:
        """The newest report of that task."""
        self.task_rose(task, life, now)
        self._doubts.heard = max(self._doubts.heard, report.timeline)
        self._check_heard(now)
        record = self.record
        if record.tasks.get(task) != life:
            if report.died_on and self._living.tasks.get(task) == life:
                self.blame.died(task, life, report.died_on)
            return
        if self.phase is Phase.EMPTY or report.timeline != record.timeline or report.unreadable:
            return
        if report.broken:
            self.blame.raised(task, report.blamed, report.broken)
        if self.phase is Phase.BROKEN:
            return
        self._reports[task] = report
        if report.broken:
            self._break(Cause.LOSS if report.lost else Cause.ERROR, task, now, report.broken)
        else:
            self._moved = max(self._moved, report.moved)
            self._restored(now)
            self._collect(task, report, now)

    def _restored(self, now: float) -> None:
        restoring = self.phase is Phase.RESTORING and self._living.all_heard
        if restoring and self._reports.keys() >= self.record.tasks.keys():
            self.phase = Phase.RUNNING
            self._rollbacks.over(now)
            self.schedule.restored(now, first=not self.record.committed)
            self._figures.restored(self.record, now)

    def _collect(self, task: int, report: SnapshotReport, now: float) -> None:
        taking = self.taking
        if taking is None or taking.storing:
            return
        if report.gives_up == taking.number:
            reason = Reason.ASIDE if report.too_much else Reason.STORE
            self._abandon(reason, now, report.why, task)
        elif report.number == taking.number:
            taking.files[task] = report
            if taking.files.keys() >= self.record.tasks.keys():
                taking.storing, taking.collected = True, now
                self._outside.manifest(taking.number, sorted(taking.files.items(), key=lambda each: each[0]))

    def stored(self, number: int, now: float, error: str = "") -> None:
        """The list of that snapshot's files lies in the store, or could not be written."""
        taking = self.taking
        if taking is None or taking.number != number:
            return  # it was abandoned meanwhile
        if error:
            self._abandon(Reason.STORE, now, error)
            return
        record = msgspec.structs.replace(self.record, committed=number, final=self.schedule.ends, blame=BlameFacts())
        self._outside.record(record)  # this is the commit
        self._figures.committed(taking, self.record.committed, now)
        self.record = record
        self.blame.committed()
        self.schedule.committed(number)
        self._outside.committed()
        self._concluded(taking, now)

    # --- snapshots --------------------------------------------------------------------------------------------

    def _begin(self, now: float) -> None:
        self._counter += 1
        self.phase, self.taking = Phase.TAKING, Taking(self._counter, now)
        self._order()

    def end(self, now: float) -> None:
        """The end is declared: the next snapshot is the last one, and the topology ends with it."""
        self._abandon(Reason.END, now, "the last one follows")
        self.schedule.end(now)

    def settle(self, now: float) -> bool:
        """Whether all that was done is in a snapshot that counts; takes one if not.  For when spouts are held."""
        if self.phase is not Phase.RUNNING:
            return False
        if self._worth_it:
            self.schedule.ask(now)
        return not self._worth_it

    @property
    def late(self) -> list[int]:
        """The tasks that the present phase waits for."""
        if self.phase in (Phase.EMPTY, Phase.BROKEN):
            return self._living.silent
        awaited = self.record.tasks if self.taking is not None or self.phase is Phase.RESTORING else {}
        return [task for task in awaited if task not in (self._reports if self.taking is None else self.taking.files)]

    def demand(self, now: float) -> int:
        """One is to be taken at once, whether anything has moved or not: that has a higher number than the returned."""
        self.schedule.demand(now, self._counter)
        return self._counter

    def bound(self, task: int) -> bool | None:
        """Whether the task has a value that no other one can have; None: it does not have its state."""
        known = self.phase not in (Phase.EMPTY, Phase.BROKEN) and task in self._reports
        return self._reports[task].bound if known else None

    def _abandon(self, reason: Reason, now: float, why: str = "", who: int = 0) -> None:
        taking = self.taking
        if taking is None:
            return
        self._figures.abandon(taking, self.record.tasks, reason, now, why, who)
        self._given_up = taking.number
        self._outside.given_up()
        self._concluded(taking, now)

    def leftover(self, listed: Iterable[str]) -> Abandoned:
        """Of snapshots that never count; ``listed``: files of lists, see there."""
        named = frozenset(listed).union(file.name for report in self._reports.values() for file in report.files)
        stored = {task: report.number for task, report in self._reports.items()}
        return Abandoned(self._since, self.record.timeline, stored, named)

    def _concluded(self, taking: Taking, now: float) -> None:
        self.phase, self.taking = Phase.RUNNING, None
        self.schedule.concluded(taking, now, first=not self.record.committed)
        self._order()

    @property
    def _worth_it(self) -> bool:
        committed = self.record.committed
        return not committed or self._moved >= committed

    # --- rollbacks --------------------------------------------------------------------------------------------

    def _break(self, cause: Cause, who: int, now: float, why: str = "") -> None:
        if self.phase in (Phase.EMPTY, Phase.BROKEN):
            return
        self._figures.broken(cause, who, why, now)
        self._abandon(Reason.ROLLBACK, now, self._figures.cause)
        self.phase = Phase.BROKEN
        self._undeclare()
        self._rollbacks.begin(now)

    def _undeclare(self) -> None:
        """All go back to where rows flow, unless the last snapshot counts: the end has to be declared again."""
        if self.schedule.ends and not self.record.final:
            self.schedule.ends = False
            self._outside.undeclared()

    @property
    def between(self) -> TimelineRecord | None:
        """What is stored together with another plan: a timeline that nobody works in, in which nothing is lost.

        None: as long as nobody knows what counts, nothing is.
        """
        if self.phase is Phase.EMPTY and not self._doubts.surveyed:
            return None
        return nobody_in(self.record.timeline + 1, self.record.committed)

    def replanned(self, places: Mapping[int, int], record: TimelineRecord | None, now: float) -> None:
        """Another plan is stored, with :attr:`between`; tasks that report by it begin the next timeline."""
        self._living.replanned(places)
        if record is None:
            return
        self._figures.broken(Cause.UPDATE, 0, "", now)
        self._abandon(Reason.ROLLBACK, now, self._figures.cause)
        self.record, self.phase = record, Phase.BROKEN
        self._order()

    def _roll_back(self) -> None:
        record, living, blame = self.record, self._living, self.blame
        blame.ended(living.risen_alone(record.tasks, record.managers))
        for name, what in blame.stories:
            self._outside.tell(name, what)
        if blame.failure is not None:
            self._outside.unusable(*blame.failure)
            return
        if blame.progress:
            self._rollbacks.progress()
        record = TimelineRecord(
            timeline=record.timeline + 1,
            restore=record.committed,
            committed=record.committed,
            tasks=dict(living.tasks),
            managers=dict(living.managers),
            final=record.final,
            blame=blame.facts,
        )
        self._outside.record(record)
        self.record, self.phase = record, Phase.RESTORING
        self._reports.clear()
        self._moved = 0
        self._order()

    def _order(self) -> None:
        order = _order_of(self.record)
        order.begun, order.abandoned = 0 if self.taking is None else self.taking.number, self._given_up
        if self.schedule.ends and not self.record.final:
            order.final = order.begun
        order.blamed.extend(self.blame.said)
        self._outside.order(order)

    # --- time -------------------------------------------------------------------------------------------------

    def tick(self, now: float) -> float:
        """Does what is due; returns when to be called again."""
        phase = self.phase
        if phase in (Phase.EMPTY, Phase.BROKEN) and self._ready(now):
            self._roll_back()
        elif self._may_begin and now >= self.schedule.next:
            self._begin(now)
        elif self.taking is not None and now >= self.schedule.over(self.taking.began):
            self._abandon(Reason.TIMEOUT, now)
        return self._due(now)

    def _ready(self, now: float) -> bool:
        return now >= self._rollbacks.due and self._doubts.surveyed and self._living.all_heard

    def _due(self, now: float) -> float:
        if self.phase is Phase.BROKEN:
            return self._rollbacks.due if now < self._rollbacks.due else math.inf
        if self.taking is not None:
            return self.schedule.over(self.taking.began)
        return max(now, self.schedule.next) if self._may_begin else math.inf

    @property
    def _may_begin(self) -> bool:
        record = self.record
        wanted = self.schedule.wants(worth_it=self._worth_it, first=not record.committed)
        return self.phase is Phase.RUNNING and self._doubts.surveyed and wanted and not record.final


def _order_of(record: TimelineRecord) -> SnapshotOrder:
    return SnapshotOrder(
        timeline=record.timeline,
        restore=record.restore,
        lives=record.tasks,
        committed=record.committed,
        managers=record.managers,
        final=record.committed if record.final else 0,
    )
