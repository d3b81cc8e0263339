"""The physical plan: the routing content that every process works from.

It changes only when components, groupings or placement change, and its ``epoch`` with it; addresses,
keys and incarnations live in a record of their own (design: an address does not raise the epoch).
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping
from dataclasses import dataclass, field

from ardea.plan.logical import LogicalPlan
from ardea.plan.packing import PackingPlan


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Where a task is.  ``container`` counts from 1."""

    task: int
    component: str
    index: int
    container: int

    @property
    def name(self) -> str:
        """What a person types: ``count-1``."""
        return f"{self.component}-{self.index}"


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """Tasks by id, and the tasks of each component in ascending order."""

    epoch: int
    logical: LogicalPlan
    tasks: Mapping[int, TaskPlan]
    component_tasks: Mapping[str, tuple[int, ...]]
    _by_container: dict[int, list[TaskPlan]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        found: dict[int, list[TaskPlan]] = {}
        for task in self.tasks.values():
            found.setdefault(task.container, []).append(task)
        self._by_container.update(sorted(found.items()))

    @classmethod
    def build(cls, logical: LogicalPlan, packing: PackingPlan, epoch: int) -> PhysicalPlan:
        """Joins what the author wrote with where packing put it."""
        tasks = {
            i.task: TaskPlan(i.task, i.component, i.index, c.number) for c in packing.containers for i in c.instances
        }
        tasks = dict(sorted(tasks.items()))
        by_component: dict[str, list[int]] = {component.name: [] for component in logical}
        for task, place in tasks.items():
            by_component[place.component].append(task)
        return cls(epoch, logical, tasks, {name: tuple(found) for name, found in by_component.items()})

    @classmethod
    def of(cls, logical: LogicalPlan, packing: PackingPlan, epoch: int) -> PhysicalPlan:
        """The same with as many tasks as ``packing`` has: ``logical`` is the author's, and may have been rescaled."""
        return cls.build(logical.scaled(packing.parallelism), packing, epoch)

    @property
    def containers(self) -> KeysView[int]:
        """Numbers of the containers that hold tasks, in ascending order."""
        return self._by_container.keys()

    def tasks_in(self, container: int) -> tuple[TaskPlan, ...]:
        """The tasks of one container, by id."""
        return tuple(self._by_container.get(container, ()))

    def upstream(self, component: str) -> tuple[int, ...]:
        """The tasks that a component's read; a spout's read none."""
        return self._tasks_of({entry.component for entry in self.logical[component].inputs})

    def readers(self, component: str) -> tuple[int, ...]:
        """The tasks that read a component's, by id."""
        return self._tasks_of(self._readers(component))

    def differs_around(self, component: str, former: PhysicalPlan) -> bool:
        """Whether the component, or one that it reads or feeds, has other tasks than before, or has them elsewhere."""
        inputs = {entry.component for entry in self.logical[component].inputs}
        return any(
            [former.tasks.get(t) for t in former.component_tasks[name]]
            != [self.tasks.get(t) for t in self.component_tasks[name]]
            for name in {component, *inputs, *self._readers(component)}
        )

    def _readers(self, component: str) -> set[str]:
        return {c.name for c in self.logical if any(entry.component == component for entry in c.inputs)}

    def _tasks_of(self, components: Iterable[str]) -> tuple[int, ...]:
        return tuple(sorted(task for name in components for task in self.component_tasks[name]))
