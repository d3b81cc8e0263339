"""Whose rows and errors have ended timelines since the last commit, and what follows (docs/snapshots.md, poison).

Pure.  What is reported is *pending* until the next timeline is written, whose record counts it.  So a master that dies
counts nothing twice, and its successor hears again what was not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ardea.protocol.wire_pb2 import Blamed
from ardea.state.records import BlamedRow, BlameFacts

MOST_ROWS = 64
"""That are counted at a time; a record must stay small."""
MOST_WAYS = 16


@dataclass(frozen=True, slots=True)
class Accused:
    """A task.  ``ways``: from how many tasks to how many rows come into its component, so many may be met first."""

    name: str
    component: str
    ways: int = 1


@dataclass(frozen=True, slots=True)
class Raised:
    """An error that has ended a task's part in the timeline; ``row`` 0: of no row that could be named."""

    row: int
    why: str


class Blame:
    """Of one topology.

    ``most``: how often a row may end a timeline before it is skipped, and a component before the topology fails.
    ``facts`` are those of the record; ``failure`` is why the topology cannot go on, and the name of the task.
    ``progress``: the last timeline to end has made a row one to be skipped.
    """

    def __init__(self, tasks: Mapping[int, Accused], most: int, facts: BlameFacts | None = None) -> None:
        self.facts = BlameFacts() if facts is None else facts
        self.failure: tuple[str, str] | None = None
        self.progress = False
        self.stories: list[tuple[str, str]] = []  # of the timeline that has ended last: of whom, and what
        self._tasks, self._most = tasks, most
        self._raised: dict[int, Raised] = {}
        self._died: dict[tuple[int, int], int] = {}  # task and life -> the row that its former life was processing

    # --- what comes in ----------------------------------------------------------------------------------------

    def raised(self, task: int, row: int, why: str) -> None:
        """A task reports what has ended its part in the present timeline; any number of times."""
        self._raised.setdefault(task, Raised(row, why))

    def died(self, task: int, life: int, row: int) -> None:
        """A life that is no part of a timeline yet reports of the one before it."""
        self._died[task, life] = row

    def committed(self) -> None:
        """Whatever was blamed is in a snapshot that counts, or comes again from there."""
        self.facts = BlameFacts()

    def replanned(self, tasks: Mapping[int, Accused]) -> None:
        """Another plan is stored; all that was done is in a snapshot."""
        self._tasks = tasks
        self._raised.clear()
        self._died.clear()
        self.committed()

    @property
    def said(self) -> list[Blamed]:
        """For the order."""
        rows = [Blamed(component=each.component, row=each.row, times=each.times) for each in self.facts.rows]
        return rows + [Blamed(component=name, times=times) for name, times in self.facts.deaths.items()]

    # --- the end of a timeline --------------------------------------------------------------------------------

    def ended(self, alone: Iterable[int]) -> None:
        """Counts what is pending.  ``alone``: tasks that have died while their stream managers lived on."""
        self.failure, self.progress, self.stories = None, False, []
        rows = {(each.component, each.row): each.times for each in self.facts.rows}
        strikes, deaths = dict(self.facts.strikes), dict(self.facts.deaths)
        by_component: dict[str, list[int]] = {}
        for task, raised in self._raised.items():
            by_component.setdefault(self._tasks[task].component, []).append(task)
            self.stories.append((self._tasks[task].name, self._count(rows, self._tasks[task].component, raised)))
        for component, tasks in by_component.items():
            self._strike(component, tasks, rows, strikes)
        for (task, _), row in self._died.items():
            raised = Raised(row, "its process died in a call of process()")
            self.stories.append((self._tasks[task].name, self._count(rows, self._tasks[task].component, raised)))
        for task in alone:
            component = self._tasks[task].component
            deaths[component] = deaths.get(component, 0) + 1
        self._raised.clear()
        self._died.clear()
        self.facts = BlameFacts(self._bounded(rows), strikes, deaths)

    def _count(self, rows: dict[tuple[str, int], int], component: str, raised: Raised) -> str:
        """Returns what is to be told of it."""
        back = "all go back to the last snapshot"
        if not raised.row:
            return f"{raised.why}; {back}, {self._most} times at most until one counts"
        times = rows.pop((component, raised.row), 0) + 1
        rows[component, raised.row] = times  # the last one to be forgotten
        if times < self._most:
            return f"{raised.why}; {back}, for this row {times} of {self._most} times"
        self.progress = self.progress or times == self._most
        return f"{raised.why}; {back}, and the row is skipped from now on: it goes to __dead_letter of {component}"

    def _strike(
        self, component: str, tasks: list[int], rows: Mapping[tuple[str, int], int], strikes: dict[str, int]
    ) -> None:
        """A component has raised.  A row that is blamed again is one that will be skipped: that is no strike."""
        named = [self._raised[task].row for task in tasks if self._raised[task].row]
        if any(rows[component, row] > 1 for row in named):
            strikes.pop(component, None)
            return
        strikes[component] = count = strikes.get(component, 0) + 1
        task = tasks[0]
        allowed = max(self._most, min(MOST_WAYS, self._tasks[task].ways)) if named else self._most
        if count > allowed:
            which = "each time with another row" if named else "and no single row can be blamed"
            self._fails(
                f"{component} has ended {count} timelines without a snapshot that counts in between, {which}; the last "
                f"error: {self._raised[task].why}",
                self._tasks[task].name,
            )

    def _bounded(self, rows: dict[tuple[str, int], int]) -> tuple[BlamedRow, ...]:
        """Rows that will be skipped stay; of others the oldest go first."""
        left = len(rows) - MOST_ROWS
        fresh = [row for row, times in rows.items() if times < self._most]
        if left > 0 and len(fresh) <= left:
            component, _ = next(reversed(rows))
            names = [accused.name for accused in self._tasks.values() if accused.component == component]
            self._fails(
                f"more than {MOST_ROWS} rows between two snapshots have each ended {self._most} timelines, the last "
                f"ones in {component}; raise FailedException for rows that cannot be processed",
                names[0],
            )
        for row in fresh[: max(0, left)]:
            del rows[row]
        return tuple(BlamedRow(component, row, times) for (component, row), times in rows.items())[-MOST_ROWS:]

    def _fails(self, reason: str, task: str) -> None:
        if self.failure is None:
            self.failure = reason, task
