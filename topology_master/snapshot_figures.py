"""What has become of a topology's snapshots and rollbacks: in numbers for metrics, in words for people.  Pure.

The coordinator tells it (:class:`ardea.topology_master.snapshots.Snapshots`); nothing depends on what it knows.
"""

from __future__ import annotations

import enum
import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from ardea.health import Trouble
from ardea.plan.names import TOPOLOGY_MASTER
from ardea.protocol.wire_pb2 import SnapshotReport
from ardea.snapshots.manifest import number_in, text_of
from ardea.snapshots.status import LastRollback, LastSnapshot
from ardea.state.records import TimelineRecord

ALARMING = 3
"""So many snapshots abandoned in a row are a trouble."""
NAMED = 4
"""Tasks that a sentence names."""
log = logging.getLogger(TOPOLOGY_MASTER)


class Cause(enum.StrEnum):
    """Why a timeline has ended; the value is a label of metrics."""

    TASK = "task"
    MANAGER = "manager"
    ERROR = "error"
    LOSS = "loss"
    UPDATE = "update"
    RECORD = "record"


class Reason(enum.StrEnum):
    """Why a snapshot was abandoned; the value is a label of metrics."""

    TIMEOUT = "timeout"
    ROLLBACK = "rollback"
    STORE = "store"
    ASIDE = "aside"
    END = "end"


@dataclass(slots=True)
class Taking:
    """The snapshot under way: ``files`` by task, in the order in which they came.

    ``storing``: their list is being stored, since ``collected``.
    """

    number: int
    began: float
    files: dict[int, SnapshotReport] = field(default_factory=dict)
    storing: bool = False
    collected: float = 0.0


@dataclass(frozen=True, slots=True)
class Committed:
    """See :class:`ardea.snapshots.status.LastSnapshot`; ``at`` is the time of the commit."""

    number: int
    at: float
    seconds: float
    bytes: int
    written: int
    slowest: str
    slowest_seconds: float
    aligned: float


@dataclass(slots=True)
class Rollback:
    """The last one: began ``at``, and ``restored`` so many seconds after the break, to a snapshot of so many ``bytes``.

    None: not yet, or a former master has committed that.
    """

    cause: Cause
    why: str
    at: float
    restored: float | None = None
    bytes: int | None = None


class SnapshotFigures:
    """Of one master's coordinator.

    ``abandoned`` counts snapshots in a row, ``why`` is the last one's.  ``reading``: of tasks that cannot read their
    state, what keeps them from it.  ``down``: seconds in which a timeline was over and not all tasks had the next one's
    state.
    """

    def __init__(self, name: Callable[[int], str], tell: Callable[[str], None]) -> None:
        """``name`` is a task's; ``tell`` hears of what people look for in a story."""
        self.last: Committed | None = None
        self.commits = self.written = self.abandoned = 0
        self.abandonments: Counter[Reason] = Counter()
        self.why = ""
        self.rollbacks: Counter[Cause] = Counter()
        self.rollback: Rollback | None = None
        self.down = 0.0
        self.reading: dict[int, str] = {}
        self._name, self._tell = name, tell
        self._began: float | None = None  # since when it looks
        self._broke: float | None = None  # of the rollback that goes on, its first break
        self._fails: float | None = None  # when the first of those in a row was abandoned

    @property
    def cause(self) -> str:
        """Why the last timeline has ended, in words."""
        return "" if self.rollback is None else self.rollback.why

    # --- what it is told --------------------------------------------------------------------------------------

    def heard(self, task: int, report: SnapshotReport) -> None:
        """Any report of a task, of whatever timeline."""
        if report.waits:
            self.reading[task] = report.waits
        else:
            self.reading.pop(task, None)

    def committed(self, taking: Taking, former: int, now: float) -> None:
        """It counts; ``former`` did before."""
        files = [file for report in taking.files.values() for file in report.files]
        slowest = next(reversed(taking.files))
        self.last = Committed(
            number=taking.number,
            at=now,
            seconds=now - taking.began,
            bytes=sum(file.bytes for file in files),
            written=sum(file.bytes for file in files if number_in(file.name) > former),
            slowest=self._name(slowest),
            slowest_seconds=taking.collected - taking.began,
            aligned=taking.files[slowest].aligned,
        )
        if not former:
            self._say(f"the first snapshot, {text_of(taking.number)}, counts")
        elif self.abandoned:
            self._say(f"snapshot {text_of(taking.number)} counts, after {self.abandoned} that were abandoned")
        self.commits += 1
        self.written += self.last.written
        self.abandoned, self.why, self._fails = 0, "", None

    def abandon(self, taking: Taking, tasks: Collection[int], reason: Reason, now: float, why: str, who: int) -> None:
        """It never counts.  ``tasks`` are all that were to report, ``who`` is the one that asked for it, or 0."""
        late = self._late(task for task in tasks if task not in taking.files and task != who)
        why = f"{self._name(who)}: {why}" if who else why
        if reason is Reason.TIMEOUT:
            where = f"{late} did not store it" if late else "the list of its files was not stored"
            why = f"after {now - taking.began:.0f} s {where}"
        self.abandonments[reason] += 1
        self.abandoned += 1
        self.why = why
        self._fails = now if self._fails is None else self._fails
        self._say(f"snapshot {text_of(taking.number)} was abandoned: {why}", logging.WARNING)
        if self.abandoned == ALARMING:
            others = f"; {late} had not stored it either" if late and reason is Reason.STORE else ""
            what = f"{ALARMING} snapshots in a row were abandoned, the last one because of {why}{others}"
            self._say(what, logging.WARNING)

    def broken(self, cause: Cause, who: int, why: str, now: float) -> None:
        """A timeline is over.  ``who``: a task or a container; ``why``: what it said."""
        match cause:
            case Cause.TASK:
                why = f"{self._name(who)} has a new life"
            case Cause.MANAGER:
                why = f"the stream manager of container {who} has a new life"
            case Cause.UPDATE:
                why = "an update"
            case Cause.RECORD:
                why = "the state manager has lost what it held; the store of snapshots has the newest"
        self.rollbacks[cause] += 1
        self.rollback = Rollback(cause, why, now)
        self._broke = now if self._broke is None else self._broke
        self._say(f"rolls back: {why}", logging.WARNING)

    def restored(self, record: TimelineRecord, now: float) -> None:
        """All tasks have the state of the timeline."""
        self.reading.clear()
        since = f"snapshot {text_of(record.restore)}" if record.restore else "empty state"
        after = ""
        if self._broke is not None and self.rollback is not None:
            seconds = self.rollback.restored = now - self._broke
            if self.last is not None and self.last.number == record.restore:
                self.rollback.bytes = self.last.bytes
            self.down += seconds
            self._broke = None
            after = f", {seconds:.2f} s after the break"
        self._say(f"timeline {record.timeline} goes on from {since}{after}")

    # --- what is asked of it ----------------------------------------------------------------------------------

    def age(self, now: float) -> float:
        """Seconds since the last commit, or since this was asked for the first time."""
        if self._began is None:
            self._began = now
        return now - (self._began if self.last is None else self.last.at)

    def down_by(self, now: float) -> float:
        """``down``, with the rollback that goes on."""
        return self.down + (0.0 if self._broke is None else now - self._broke)

    def last_snapshot(self, committed: int, now: float) -> LastSnapshot | None:
        """For people; ``committed`` is the one that counts, and 0 if none does."""
        last = self.last
        if not committed:
            return None
        if last is None or last.number != committed:
            return LastSnapshot(number=text_of(committed))
        return LastSnapshot(
            number=text_of(last.number),
            ago=round(now - last.at, 3),
            seconds=round(last.seconds, 3),
            bytes=last.bytes,
            written=last.written,
            slowest=last.slowest,
            slowest_seconds=round(last.slowest_seconds, 3),
            aligned=round(last.aligned, 3),
        )

    def last_rollback(self, now: float) -> LastRollback | None:
        """For people."""
        last = self.rollback
        if last is None:
            return None
        restored = None if last.restored is None else round(last.restored, 3)
        return LastRollback(last.cause, last.why, round(now - last.at, 3), restored, last.bytes)

    def waits(self, late: Collection[int]) -> Iterator[str]:
        """Sentences of the tasks that are awaited: what each says itself, then who else it is."""
        for task, why in sorted(self.reading.items()):
            yield f"{self._name(task)} {why}"
        if others := self._late(task for task in late if task not in self.reading):
            yield f"for {others}"

    def troubles(self, now: float, wall: float) -> Iterator[Trouble]:
        """What the topology's health knows of it; ``wall``: Unix seconds of ``now``."""
        for task, why in sorted(self.reading.items()):
            yield Trouble(self._name(task), None, why)
        if self.abandoned >= ALARMING and self._fails is not None:
            why = f"{self.abandoned} in a row were abandoned, the last one because of {self.why}"
            yield Trouble("snapshots", wall - (now - self._fails), why)

    def _late(self, tasks: Iterator[int]) -> str:
        names = [self._name(task) for task in tasks]
        more = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
        return f"{', '.join(names[:NAMED])}{more}"

    def _say(self, what: str, level: int = logging.INFO) -> None:
        log.log(level, what)
        self._tell(what)
