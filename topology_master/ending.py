"""How a topology ends: who rests, when nothing is on its way any more, and what the last word is.

Pure.  The page is docs/end-of-topology.md.
"""

from __future__ import annotations

import enum
import functools
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ardea.plan.names import STREAM_MANAGER, container_name
from ardea.plan.physical import PhysicalPlan
from ardea.protocol.rounds import Rounds
from ardea.protocol.wire_pb2 import ACTIVE, DONE, ENDED, RESTING, TaskReport
from ardea.state.records import EndFacts, RunState, TaskFacts

CALLED, CALLED_LENGTH = 64, 200
"""Of how many rows whose trees broke it is known what spouts call them, and in how many characters."""


class Phase(enum.Enum):
    """Running: tuples may flow.  Ending: the end is declared.  Over: the final state is known."""

    RUNNING = "running"
    ENDING = "ending"
    OVER = "over"


@dataclass(slots=True)
class LastReport:
    """The newest report of one task."""

    life: int = 0
    version: int = 0
    state: int = ACTIVE
    round: int = 0
    seen: int = 0
    given_up: int = 0
    former_given_up: int = 0
    open: int = 0
    waiting: int = 0
    epoch: int = 0
    hold: int = 0
    error: str = ""
    error_tree: int = 0
    named: str = ""
    """The last error that came with what its row is called."""


class Ending:
    """Collects reports; says when the end can be declared, and when everything has ended.

    ``facts`` are those of the former master.  ``unsaved``: the present ones differ from what was saved.
    ``begun``: a spout has reported, though an update may have moved it since; none emits before it has.
    ``unheard``: tasks that have not reported yet.
    ``failure``: why the topology fails; ``culprit``: see :class:`~ardea.state.records.ExecutionState`.
    """

    def __init__(self, plan: PhysicalPlan, facts: EndFacts, *, goes_back: bool = False) -> None:
        """``goes_back``: after a death all tasks go back to a snapshot, and the end is declared again."""
        self._goes_back = goes_back
        self.phase = Phase.RUNNING
        self.failure = self.culprit = ""
        self.unsaved = self.begun = False
        self.tasks = {task: LastReport() for task in plan.tasks}
        self.unheard = dict.fromkeys(plan.tasks)
        self._managers = dict(facts.managers)
        self._removed = facts.removed
        self._ended_before = frozenset(facts.ended)
        self._met: set[int] = set()  # managers, by this master
        self._called: dict[int, str] = {}  # rows whose trees broke last, by root
        for task, known in facts.tasks.items():
            last = self.tasks[task]
            last.life, last.given_up, last.former_given_up = known.life, known.given_up, known.former_given_up
            last.state = ENDED if task in self._ended_before else ACTIVE
        self._connect(plan)

    def _connect(self, plan: PhysicalPlan) -> None:
        self._plan = plan
        self._upstream = {c.name: {entry.component for entry in c.inputs} for c in plan.logical}
        self._rounds = {
            name: Rounds({task: self.tasks[task].round for task in tasks})
            for name, tasks in plan.component_tasks.items()
        }

    def replanned(self, plan: PhysicalPlan) -> None:
        """An update: who stays where it is keeps what is known of it."""
        former, self.tasks = self.tasks, {}
        for task, place in plan.tasks.items():
            last = former.get(task, LastReport())
            if task in former and self._plan.tasks[task].container != place.container:
                last = LastReport(former_given_up=last.given_up + last.former_given_up)
            self.tasks[task] = last
        self.unheard = {task: None for task, last in self.tasks.items() if not last.version}
        self._removed += sum(t.given_up + t.former_given_up for task, t in former.items() if task not in plan.tasks)
        self._managers = {number: life for number, life in self._managers.items() if number in plan.containers}
        self._connect(plan)

    def reported(self, report: TaskReport) -> bool:
        """Takes a report; False if a higher incarnation, or a later report, is known already."""
        last = self.tasks.get(report.task)
        if last is None or (report.life, report.version) <= (last.life, last.version):
            return False
        component = self._plan.tasks[report.task].component
        self.begun = self.begun or not self._upstream[component]
        ending = self.phase is Phase.ENDING
        if report.life > last.life:
            if last.life and ending:
                self._task_lost(report.task, heard=last.version > 0)
            self.unsaved |= ending or last.given_up > 0
            last.former_given_up += last.given_up
        self.unsaved |= ending and (report.given_up != last.given_up or last.state != report.state == ENDED)
        last.life, last.version = report.life, report.version
        if report.version:
            self.unheard.pop(report.task, None)
        last.state, last.round, last.seen = report.state, report.round, report.seen
        self._rounds[component][report.task] = report.round
        last.given_up, last.open, last.waiting = report.given_up, report.open, report.waiting
        last.epoch, last.hold = report.epoch, report.hold
        if report.error:
            if last.error_tree in self._called:
                last.named = self._said(last)
            last.error, last.error_tree = report.error, report.error_tree
        self._called |= {tree: f"{called[:CALLED_LENGTH]} of {component}" for tree, called in report.broken.items()}
        for tree in [*self._called][:-CALLED]:
            del self._called[tree]
        if report.failure:
            self._fails(report.failure, self._plan.tasks[report.task].name)
        return True

    def manager_met(self, container: int, life: int) -> None:
        """A stream manager's incarnation; when a higher one comes after the declaration, what it held may be gone."""
        former, met = self._managers.get(container, 0), container in self._met
        self._met.add(container)
        if life <= former:
            return
        self._managers[container] = life
        self.unsaved |= self.phase is Phase.ENDING
        if not former:
            return
        held = self._plan.tasks_in(container)
        readers = {task for name in {t.component for t in held} for task in self._plan.readers(name)}
        touched = readers.union(task.task for task in held)
        if self.phase is Phase.ENDING and not self._goes_back and not self._had_ended(touched, met):
            self._fails(
                f"the stream manager of container {container} died after the end was declared, "
                "before the tasks that it holds and feeds had ended",
                f"{container_name(container)}/{STREAM_MANAGER}",
            )

    @property
    def quiet(self) -> bool:
        """Whether every task rests, every spout is done, and each rest has been seen by all that it feeds.

        The rounds make the reports one consistent cut: a task that got data after it reported its rest has a source
        whose present round it has not seen.
        """
        if self.phase is not Phase.RUNNING:
            return False
        tasks, plan = self.tasks, self._plan
        spouts = (task for c in plan.logical if c.kind == "spout" for task in plan.component_tasks[c.name])
        spouts_done = all(tasks[task].state == DONE for task in spouts)
        return spouts_done and next(self.restless(tasks), None) is None

    def restless(self, tasks: Iterable[int]) -> Iterator[int]:
        """Those of the tasks that do not rest, or have not seen the present rest of one upstream."""
        present = {name: self._digest(sources) for name, sources in self._upstream.items()}
        return (
            task
            for task in tasks
            if (last := self.tasks[task]).state not in (RESTING, DONE)
            or last.seen != present[self._plan.tasks[task].component]
        )

    def _digest(self, components: Iterable[str]) -> int:
        """Of the present rounds of their tasks."""
        return functools.reduce(operator.xor, (self._rounds[name].digest for name in components), 0)

    def declared(self) -> None:
        """The end is written down."""
        self.phase = Phase.ENDING

    def undeclared(self) -> None:
        """All go back to where rows may flow; each reports again before anything is made of what is known of it."""
        self.phase = Phase.RUNNING

    def facts(self, state: RunState, drain: float | None) -> EndFacts:
        """What a new master must know if it finds ``state``: all incarnations as soon as a loss counts."""
        tasks = self.tasks.items()
        if state is RunState.ENDING:
            known = {t: TaskFacts(last.life, last.given_up, last.former_given_up) for t, last in tasks}
            ended = [t for t, last in tasks if last.state == ENDED]
            return EndFacts(drain, known, dict(self._managers), self._removed, ended)
        gone = {t: TaskFacts(0, 0, last.former_given_up) for t, last in tasks if last.former_given_up}
        return EndFacts(drain, gone, removed=self._removed)

    @property
    def all_ended(self) -> bool:
        """Whether every task has reported its end."""
        return self.phase is Phase.ENDING and all(last.state == ENDED for last in self.tasks.values())

    @property
    def given_up(self) -> int:
        """Rows that will never be sent again, of all lives."""
        return self._removed + sum(last.given_up + last.former_given_up for last in self.tasks.values())

    def verdict(self) -> tuple[bool, str, str]:
        """(succeeded, reason, culprit) of a topology whose tasks have ended."""
        if self.failure:
            return False, self.failure, self.culprit
        if self.given_up:
            culprit, error = next(reversed(self.errors().items()), ("", ""))
            why = f"; the last error: {error}" if error else ""
            tuples = "1 tuple was" if self.given_up == 1 else f"{self.given_up:,} tuples were"
            return False, f"{tuples} given up{why}", culprit
        return True, "", ""

    def errors(self) -> dict[str, str]:
        """The last exception of each task that had one, by the task's name."""
        return {self._plan.tasks[task].name: self._said(last) for task, last in self.tasks.items() if last.error}

    def _said(self, last: LastReport) -> str:
        """The error, with what its row is called where it came from."""
        if called := self._called.get(last.error_tree):
            return f"{last.error}; {called}"
        same = last.named.partition(" (")[0] == last.error.partition(" (")[0]
        return last.named if same and last.named else last.error

    def _fails(self, reason: str, culprit: str) -> None:
        """What comes first is the cause."""
        if not self.failure:
            self.failure, self.culprit = reason, culprit

    def _had_ended(self, tasks: Iterable[int], heard: bool) -> bool:
        """Whether they had when somebody died, whose former life this master has ``heard``, or only the one before it.

        What they report now does not count then: they may have ended since, by the markers of the new life.
        """
        return all(self.tasks[t].state == ENDED if heard else t in self._ended_before for t in tasks)

    def _task_lost(self, task: int, heard: bool) -> None:
        """A new life after the declaration: what the former one was to emit at the end may be gone."""
        name, component = self._plan.tasks[task].name, self._plan.tasks[task].component
        if not self._upstream[component] or self._goes_back:
            return  # a spout is told the end again, and closes
        if self._had_ended((task, *self._plan.readers(component)), heard):
            return
        self._fails(f"{name} died after the end was declared, before what it feeds had ended", name)
