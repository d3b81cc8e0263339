"""What an update changes, and when it may go on: pure decisions (docs/updating.md).

Draining --all rest--> the plan is written --> Switching --all work by it--> the spouts go on
   |                                              |
   +--too late: refused                           +--too late: the former plan is written
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ardea.plan.logical import LogicalPlan
from ardea.plan.physical import PhysicalPlan
from ardea.topology_master.ending import Ending, LastReport


class Advice(enum.Enum):
    """What to do now.  SETTLE: whatever is still open is lost.  REFUSE: it takes too long."""

    WAIT = "wait"
    SETTLE = "settle"
    GO_ON = "go on"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """What turns one plan into another.

    Attributes:
        changed: components whose tasks, places, code or configuration differ.
        touched: these, and whoever reads or feeds one of them, in either plan.
        waits: components of the former plan that have to rest: the touched ones and all upstream of them.
        held: the spouts, of either plan, from which tuples reach a touched component.
        leaving: tasks of the former plan whose processes end.
    """

    changed: frozenset[str]
    touched: frozenset[str]
    waits: frozenset[str]
    held: frozenset[str]
    leaving: frozenset[int]

    @classmethod
    def between(
        cls, former: PhysicalPlan, wanted: PhysicalPlan, *, rebuilt: bool, whole: bool = False
    ) -> PlanDifference:
        """``rebuilt``: code or configuration differ, so that every instance is started again.

        ``whole``: so is every instance of a container that is given other tasks.
        """
        names = former.component_tasks.keys() | wanted.component_tasks.keys()
        replaced = _replaced(former, wanted) if whole else frozenset()
        changed = frozenset(name for name in names if rebuilt or _places(former, name) != _places(wanted, name))
        changed |= {t.component for plan in (former, wanted) for t in plan.tasks.values() if t.container in replaced}
        touched = changed | _neighbours(former.logical, changed) | _neighbours(wanted.logical, changed)
        waits = _with_upstream(former.logical, touched)
        spouts = {c.name for plan in (former, wanted) for c in plan.logical.spouts}
        stays = {} if rebuilt else wanted.tasks
        return cls(
            changed,
            touched,
            waits,
            frozenset(spouts & (waits | _with_upstream(wanted.logical, touched))),
            frozenset(
                t
                for t, task in former.tasks.items()
                if t not in stays or stays[t].container != task.container or task.container in replaced
            ),
        )

    def everywhere(self, former: PhysicalPlan, wanted: PhysicalPlan) -> PlanDifference:
        """The same, where all of the topology has to rest: it goes on from one snapshot."""
        spouts = {c.name for plan in (former, wanted) for c in plan.logical.spouts}
        return dataclasses.replace(self, waits=frozenset(former.component_tasks), held=frozenset(spouts))

    @classmethod
    def without(cls, plan: PhysicalPlan, containers: Collection[int]) -> PlanDifference:
        """What has to rest before these containers are ended and come back."""
        leaving = frozenset(task.task for number in containers for task in plan.tasks_in(number))
        there = frozenset(plan.tasks[task].component for task in leaving)
        waits = _with_upstream(plan.logical, there)
        return cls(there, there, waits, frozenset(c.name for c in plan.logical.spouts if c.name in waits), leaving)


class Draining:
    """Until everything that has to rest does, and no tree of its spouts is open.

    ``hold`` is the number of the newest order that the spouts have to obey.
    """

    def __init__(self, plan: PhysicalPlan, difference: PlanDifference, timeout: float, now: float) -> None:
        """``timeout``: the longest message timeout of the held spouts, in seconds."""
        self.difference = difference
        self.hold = 0
        self.settled = False
        self._names = {t: task.name for t, task in plan.tasks.items()}
        self._waits = [t for name in sorted(difference.waits) for t in plan.component_tasks[name]]
        self._spouts = frozenset(t for t in self._waits if plan.tasks[t].component in difference.held)
        self._settle_at, self.refused_at = now + timeout, now + 2 * timeout

    def late(self, ending: Ending) -> list[str]:
        """For whom it waits, and why."""
        restless = set(ending.restless(self._waits))
        return [
            f"{self._names[task]} {why}"
            for task in self._waits
            if (why := self._why(task, ending.tasks[task], resting=task not in restless))
        ]

    def _why(self, task: int, last: LastReport, *, resting: bool) -> str:
        if task in self._spouts:
            if last.hold != self.hold:
                return "has not answered"
            if last.open > last.waiting:
                return f"has {last.open - last.waiting:,} open trees"
            if task in self.difference.leaving and last.open:
                return f"has {last.open:,} rows to send again"
        return "" if resting else "is not at rest yet"

    def look(self, ending: Ending, now: float) -> Advice:
        """What to do now."""
        if not self.late(ending):
            self.settled = True  # and if a snapshot is awaited yet, nobody looks before it has been, or it is too late
            return Advice.GO_ON
        if now >= self.refused_at:
            return Advice.REFUSE
        if now >= self._settle_at and not self.settled:
            self.settled = True
            return Advice.SETTLE
        return Advice.WAIT

    @property
    def due(self) -> float:
        """When to look again at the latest."""
        return self.refused_at if self.settled else self._settle_at


class Switching:
    """Until every task works by the present plan.  ``unusable``: why none ever will."""

    def __init__(self, plan: PhysicalPlan, deadline: float) -> None:
        """``deadline``: infinity where there is no way back."""
        self._plan = plan
        self._deadline = deadline
        self.unusable = ""

    @property
    def due(self) -> float:
        """When to look again at the latest."""
        return -math.inf if self.unusable else self._deadline

    def late(self, ending: Ending) -> list[str]:
        """For whom it waits."""
        return [
            f"{self._plan.tasks[task].name} does not work by it yet"
            for task, last in ending.tasks.items()
            if last.epoch != self._plan.epoch
        ]

    def look(self, late: Sequence[str], now: float) -> Advice:
        """What to do now, as long as one waits for those."""
        if now >= self.due and (late or self.unusable):
            return Advice.REFUSE
        return Advice.WAIT if late else Advice.GO_ON


def renumbered(former: PhysicalPlan, wanted: PhysicalPlan, highest: int) -> str:
    """What is wrong with the task ids of ``wanted``; empty if nothing is.  ``highest``: ever used before."""
    highest = max(highest, *former.tasks)
    for task, place in wanted.tasks.items():
        known = former.tasks.get(task)
        if known is None and task <= highest:
            return f"{place.name} would get the id {task}, which is not above {highest}, the highest ever used"
        if known is not None and (known.component, known.index) != (place.component, place.index):
            return f"task {task} is {known.name} and would be {place.name}"
    return ""


def _places(plan: PhysicalPlan, component: str) -> Mapping[int, int]:
    return {task: plan.tasks[task].container for task in plan.component_tasks.get(component, ())}


def _replaced(former: PhysicalPlan, wanted: PhysicalPlan) -> frozenset[int]:
    """Containers whose tasks are others."""
    before, after = ({(task.container, t) for t, task in plan.tasks.items()} for plan in (former, wanted))
    return frozenset(container for container, _ in before ^ after)


def _neighbours(logical: LogicalPlan, names: Iterable[str]) -> frozenset[str]:
    wanted = set(names)
    found: set[str] = set()
    for component in logical:
        sources = {entry.component for entry in component.inputs}
        if component.name in wanted:
            found |= sources
        elif sources & wanted:
            found.add(component.name)
    return frozenset(found)


def _with_upstream(logical: LogicalPlan, names: Iterable[str]) -> frozenset[str]:
    known = [name for name in names if any(c.name == name for c in logical)]
    return frozenset(known).union(*(logical.upstream(name) for name in known))
