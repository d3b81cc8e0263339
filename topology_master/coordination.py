"""The coordinator of snapshots among the other parts of a master: its orders, what it stores, what it hears."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Protocol

from ardea.config import Settings
from ardea.health import Trouble
from ardea.plan.definition import Begins
from ardea.plan.keyed import KeyedComponent, keyed_components
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.wire_pb2 import SnapshotOrder, SnapshotReport, TaskReport
from ardea.snapshots.manifest import File, Manifest, Part, encode_manifest, manifest_name, text_of
from ardea.snapshots.savepoint import Savepoint
from ardea.snapshots.status import SnapshotStatus, UnderWay
from ardea.state.records import TimelineRecord
from ardea.topology_master.blame import Accused, Blame
from ardea.topology_master.listings import Listings
from ardea.topology_master.orders import Orders
from ardea.topology_master.pacing import Pace
from ardea.topology_master.sink_figures import SinkFigures
from ardea.topology_master.snapshot_figures import ALARMING, SnapshotFigures
from ardea.topology_master.snapshots import Phase, Snapshots
from ardea.topology_master.store import Store
from ardea.topology_master.stories import SNAPSHOTS
from ardea.topology_master.surveys import Survey

LOOKS_EVERY = 0.02
"""Seconds between two looks at whether a list is stored, while one is being stored."""


class Topology(Protocol):
    """The master, as far as snapshots concern it."""

    @property
    def came_up(self) -> bool:
        """Whether every task has reported at least once, to any master."""

    def undeclared(self) -> None:
        """See :meth:`ardea.topology_master.snapshots.Outside.undeclared`."""

    def fail(self, reason: str, culprit: str = "") -> None:
        """Ends the topology as FAILED."""

    def unusable(self, reason: str, culprit: str) -> None:
        """It cannot go on with the code that it has: an update that brought it is put back; else as :meth:`fail`."""

    def tell(self, name: str, what: str) -> None:
        """A story goes on: that of a task, by its name, or of snapshots."""


class Coordination:
    """Of one master, in a topology whose mode takes snapshots."""

    def __init__(
        self, term: int, plan: PhysicalPlan, orders: Orders, store: Store, topology: Topology, begins: Begins | None
    ) -> None:
        """``begins``: the savepoint from which the topology begins; None: it begins with nothing."""
        self._orders, self._store, self._topology = orders, store, topology
        self._stored: deque[tuple[int, str]] = deque()  # from another thread
        self._manifest: Manifest | None = None  # the last that was written
        self._listed: set[str] = set()  # files of all lists that may lie in the store, from the last commit's on
        self._after: int | None = None  # a snapshot with a higher number is demanded
        self.demanded: Manifest | None = None  # it counts, and none of its files is deleted
        self._owing: set[int] = set()  # tasks with rows that are to be written outside
        self._plan = plan
        self._settings = settings = Settings.of(plan.logical.config)
        self.figures = SnapshotFigures(self._name, partial(topology.tell, SNAPSHOTS))
        self.sinks = SinkFigures()
        pace = Pace(settings.snapshot_interval, settings.snapshot_timeout)
        record = store.timeline()
        blame = Blame(_accused(plan), settings.max_rollbacks, None if record is None else record.blame)
        self.snapshots = Snapshots(term, _places(plan), pace, self, record, blame)
        self.listings = Listings(store, self.snapshots)
        self._survey = Survey(store, plan.logical, begins if record is None else None)

    # --- what comes in ----------------------------------------------------------------------------------------

    def manager_met(self, container: int, now: float) -> None:
        """A stream manager says hello, in another life."""
        self.snapshots.manager_met(container, now)

    def manager_rose(self, container: int, life: int, now: float) -> None:
        """A stream manager has registered, in this life."""
        self.snapshots.manager_rose(container, life, now)

    def reported(self, report: TaskReport, now: float) -> None:
        """A task says something; one that does not work by the plan yet has the keys and the readers of another one."""
        if report.epoch == self._plan.epoch:
            self.figures.heard(report.task, report.snapshots)
            self.sinks.heard(report.task, report.snapshots)
            (self._owing.add if report.snapshots.owes else self._owing.discard)(report.task)
            self.snapshots.reported(report.task, report.life, report.snapshots, now)
            said, record = report.snapshots, self.snapshots.record
            if said.unreadable and said.timeline == record.timeline and record.tasks.get(report.task) == report.life:
                self._topology.unusable(said.unreadable, self._plan.tasks[report.task].name)

    def replanned(self, plan: PhysicalPlan, record: TimelineRecord | None, now: float) -> None:
        """Another plan is stored, with that record; None: with that which there is."""
        self._plan = plan
        self.figures.reading.clear()
        self._owing.clear()
        self.sinks.replanned(plan.tasks)
        self.snapshots.blame.replanned(_accused(plan))
        self.snapshots.replanned(_places(plan), record, now)

    @property
    def flows(self) -> bool:
        """Whether what tasks have reported is of the timeline that runs."""
        return self.snapshots.phase in (Phase.RUNNING, Phase.TAKING)

    @property
    def sleeps(self) -> bool:
        """Whether nothing flows before the topology is activated: its tasks have no state until then."""
        return not self.flows and not self._orders.active

    def settle(self, now: float) -> bool:
        """See :class:`ardea.topology_master.updates.Memory`, as for :meth:`bound`."""
        return self.snapshots.settle(now)

    def restoring(self) -> list[str]:
        """See :class:`ardea.topology_master.updates.Memory`; tasks of a paused topology read nothing yet."""
        if self.flows or not self._orders.active:
            return []
        said, late = self.figures.reading, self.snapshots.late
        waits = [f"{self._plan.tasks[task].name} {said.get(task) or 'does not have its state yet'}" for task in late]
        return waits or ["all go back to their last snapshot"]

    def stuck(self, *, late: bool) -> bool:
        """See :class:`ardea.topology_master.updates.Memory`, as for the next."""
        never = self.sleeps or bool(self.figures.reading)
        return not self.flows and self.snapshots.record.timeline > 0 and (late or never)

    def owing(self, tasks: Iterable[int]) -> list[str]:
        """What a task without its state has not said may be."""
        return [self._name(task) for task in tasks if task in self._owing or self.snapshots.bound(task) is None]

    def bound(self, tasks: Iterable[int]) -> list[str]:
        """What a task without its state has not said may be."""
        logical, found = self._plan.logical, []
        for place in map(self._plan.tasks.__getitem__, tasks):
            bound = self.snapshots.bound(place.task)
            if bound or (bound is None and "TaskState" in logical[place.component].states.values()):
                found.append(place.name)
        return found

    @property
    def groups(self) -> int:
        """Among which keys are divided."""
        return self._settings.key_groups

    @property
    def keyed(self) -> dict[str, KeyedComponent]:
        """By which fields they are."""
        return keyed_components(self._plan.logical)

    def save(
        self,
        savepoint: Savepoint,
        place: str,
        *,
        anew: bool,
        wanted: Callable[[], bool],
        done: Callable[[Savepoint | str], None],
    ) -> None:
        """See :class:`ardea.topology_master.store.Store`."""
        self._store.save(savepoint, place, anew=anew, wanted=wanted, done=done)

    def demand(self, now: float) -> None:
        """A snapshot is to be taken at once: it will be :attr:`demanded`, until it is released."""
        self._after = self.snapshots.demand(now)

    def release(self) -> None:
        """Nobody needs the one that was demanded any more."""
        self._after = self.demanded = None
        self.snapshots.schedule.withdraw()
        self._retain()

    def tick(self, now: float) -> float:
        """Does what is due; returns when to be called again."""
        surveyed = self._look(now)
        while self._stored:
            number, error = self._stored.popleft()
            self.snapshots.stored(number, now, error)
        self.sinks.committed(self.snapshots.record.committed, now)
        due = min(surveyed, self.snapshots.tick(now))
        taking = self.snapshots.taking
        return min(due, now + LOOKS_EVERY) if taking is not None and taking.storing else due

    @property
    def interval(self) -> float:
        """Seconds between two snapshots."""
        return self._settings.snapshot_interval

    def status(self, now: float) -> SnapshotStatus:
        """For people."""
        snapshots, figures, settings, taking = self.snapshots, self.figures, self._settings, self.snapshots.taking
        return SnapshotStatus(
            mode=settings.reliability_mode,
            state=snapshots.phase.name,
            timeline=snapshots.record.timeline,
            interval=self.interval,
            last=figures.last_snapshot(snapshots.record.committed, now),
            taking=None if taking is None else UnderWay(text_of(taking.number), round(now - taking.began, 3)),
            abandoned=figures.abandoned,
            why=figures.why,
            rollbacks=figures.rollbacks.total(),
            rollback=figures.last_rollback(now),
            waits=[self.begins] if self.begins else list(figures.waits(snapshots.late)),
            sinks=self.sinks.status(self._name, now),
        )

    def troubles(self, now: float, wall: float) -> Iterator[Trouble]:
        """What the topology's health knows of snapshots and sinks; ``wall``: Unix seconds of ``now``."""
        if silence := self._survey.silence(now):
            yield Trouble("snapshots", wall - silence, self._survey.says)
        yield from self.figures.troubles(now, wall)
        yield from self.sinks.troubles(self._name, self.interval, now, wall)

    def unwritten(self, now: float) -> dict[str, tuple[int, float]]:
        """See :meth:`ardea.topology_master.sink_figures.SinkFigures.by_component`."""
        return self.sinks.by_component({task: place.component for task, place in self._plan.tasks.items()}, now)

    def _name(self, task: int) -> str:
        return self._plan.tasks[task].name

    @property
    def begins(self) -> str:
        """What keeps the topology from beginning, or from going back; empty: nothing does."""
        return self._survey.says if self.snapshots.asks else ""

    def _look(self, now: float) -> float:
        """In the store, which may know more than the record; returns when to look again."""
        found = self._survey.look(now, works=self.snapshots.works or self._topology.came_up)
        if isinstance(found, str):
            if self.snapshots.phase is Phase.EMPTY:
                self._topology.fail(found)
            else:
                self.snapshots.surveyed(None, now, found)  # rows may flow by a record, and that may be right
        elif found is not None and found.begins and found.manifest is not None:
            self.snapshots.begins(found.manifest.number, now)
        elif found is not None:
            self.snapshots.surveyed(found.manifest, now)
        return self._survey.due

    # --- what goes out: see ardea.topology_master.snapshots.Outside -------------------------------------------

    def record(self, record: TimelineRecord) -> None:
        """Under the master's term."""
        self._store.begin_timeline(record)

    def manifest(self, number: int, files: Sequence[tuple[int, SnapshotReport]]) -> None:
        """By another thread."""
        parts = {task: self._part(task, report) for task, report in files}
        timeline, final = self.snapshots.record.timeline, self.snapshots.schedule.ends
        manifest = Manifest(number=number, timeline=timeline, parts=parts, final=final)
        self._manifest = manifest
        self._listed |= manifest.names
        name = manifest_name(number)
        self._store.write_file(name, encode_manifest(manifest), lambda error: self._stored.append((number, error)))

    def committed(self) -> None:
        """By another thread, too."""
        assert self._manifest is not None
        self._listed = set(self._manifest.names)
        if self._after is not None and self._manifest.number > self._after:
            self.demanded, self._after = self._manifest, None
        self._retain()

    def _retain(self) -> None:
        committed = self._manifest
        if self.demanded is None and committed is not None and committed.number == self.snapshots.record.committed:
            self._store.retain(committed)

    def given_up(self) -> None:
        """Files of snapshots that never count must not pile up until one does."""
        if self.demanded is None and self.figures.abandoned % ALARMING == 0:
            self._store.tidy(self.snapshots.leftover(self._listed))

    def undeclared(self) -> None:
        """See :class:`Topology`, as for the next two."""
        self._topology.undeclared()

    def fail(self, reason: str, culprit: str) -> None:
        """It is written down."""
        self._topology.fail(reason, culprit)

    def unusable(self, reason: str, culprit: str) -> None:
        """See :class:`Topology`."""
        self._topology.unusable(reason, culprit)

    def tell(self, task: str, what: str) -> None:
        """For whoever asks how the topology is."""
        self._topology.tell(task, what)

    def order(self, order: SnapshotOrder) -> None:
        """To all tasks."""
        self._orders.snapshots(order)

    def _part(self, task: int, report: SnapshotReport) -> Part:
        place = self._plan.tasks[task]
        files = tuple(File(file.name, file.checksum, file.bytes) for file in report.files)
        return Part(place.component, place.index, files, report.bound)


def _places(plan: PhysicalPlan) -> dict[int, int]:
    return {task: place.container for task, place in plan.tasks.items()}


def _accused(plan: PhysicalPlan) -> dict[int, Accused]:
    ways = {name: len(plan.upstream(name)) * len(tasks) for name, tasks in plan.component_tasks.items()}
    return {task: Accused(place.name, place.component, ways[place.component]) for task, place in plan.tasks.items()}
