"""Executors: the runs of neighbouring tasks that packing places, and never splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from ardea.plan import ComponentPlan, InstancePlan, LogicalPlan, Resource

T = TypeVar("T")


def partition_fixed(chunks: int, items: Sequence[T]) -> list[tuple[T, ...]]:
    """Cuts ``items`` into ``chunks`` neighbouring runs, bigger ones first; never an empty one.

    Six in two are [1-3][4-6]; five in three are 2, 2, 1; two in eight are 1, 1.
    """
    chunks = min(chunks, len(items))
    if chunks < 1:
        return []
    size, larger = divmod(len(items), chunks)
    bounds = [number * size + min(number, larger) for number in range(chunks + 1)]
    return [tuple(items[start:end]) for start, end in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class Executor:
    """Tasks of one component that stay in one container.

    ``number`` counts from 0 within the component, ``first`` is the index of the first task there,
    ``tasks`` are ids in the order of their index, ``resource`` is what one task needs.
    """

    component: str
    number: int
    first: int
    tasks: tuple[int, ...]
    resource: Resource

    @property
    def key(self) -> tuple[str, int]:
        """What tells executors of a topology apart."""
        return self.component, self.number

    @property
    def need(self) -> Resource:
        """What all its tasks need together."""
        count = len(self.tasks)
        return Resource(self.resource.cpu * count, self.resource.ram * count, self.resource.disk * count)

    @property
    def name(self) -> str:
        """What messages call it: ``green-bolt[3-4]``."""
        return f"{self.component}{describe_tasks(self.tasks)}"

    def instances(self) -> list[InstancePlan]:
        """One entry of the packing plan for each task."""
        return [
            InstancePlan(task, self.component, self.first + offset, self.number, self.resource)
            for offset, task in enumerate(self.tasks)
        ]


def describe_tasks(tasks: Sequence[int]) -> str:
    """``[3-4]`` for neighbouring ids, ``[3,17]`` where an update added one later, ``[7]`` for one."""
    if len(tasks) > 1 and tasks[-1] - tasks[0] == len(tasks) - 1:
        return f"[{tasks[0]}-{tasks[-1]}]"
    return f"[{','.join(map(str, tasks))}]"


def executors_of(plan: LogicalPlan) -> list[Executor]:
    """All executors of a topology that is packed for the first time, by task id."""
    ids = plan.task_ids()
    return [executor for component in plan for executor in split(component, ids[component.name])]


def split(component: ComponentPlan, tasks: Sequence[int]) -> list[Executor]:
    """The executors of one component, whose tasks have these ids, in the order of their index."""
    executors: list[Executor] = []
    first = 0
    for number, run in enumerate(partition_fixed(component.executors, tasks)):
        executors.append(Executor(component.name, number, first, run, component.resource))
        first += len(run)
    return executors
