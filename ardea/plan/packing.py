"""The packing plan: which task goes into which container, and what each container asks for."""

from __future__ import annotations

from dataclasses import dataclass

from ardea.plan.resource import Resource, total


@dataclass(frozen=True, slots=True, order=True)
class InstancePlan:
    """One task.  ``index`` counts from 0 within its component, ``task`` from 1 in the topology."""

    task: int
    component: str
    index: int
    executor: int
    resource: Resource

    @property
    def name(self) -> str:
        """What a person types: ``count-1``."""
        return f"{self.component}-{self.index}"


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """``number`` counts from 1 (the master's container is 0); ``overhead`` is what the managers take."""

    number: int
    instances: tuple[InstancePlan, ...]
    overhead: Resource

    @property
    def required(self) -> Resource:
        """The instances' needs and the managers' together."""
        return total(i.resource for i in self.instances) + self.overhead


@dataclass(frozen=True, slots=True)
class PackingPlan:
    """Containers in order of their number; every task is in exactly one."""

    algorithm: str
    containers: tuple[ContainerPlan, ...]

    @property
    def instances(self) -> tuple[InstancePlan, ...]:
        """All instances, by task id."""
        return tuple(sorted(i for c in self.containers for i in c.instances))

    @property
    def parallelism(self) -> dict[str, tuple[int, int]]:
        """Component -> (executors, tasks)."""
        executors: dict[str, list[int]] = {}
        for container in self.containers:
            for instance in container.instances:
                executors.setdefault(instance.component, []).append(instance.executor)
        return {component: (len(set(numbers)), len(numbers)) for component, numbers in executors.items()}

    def container_of(self, task: int) -> int:
        """The container's number; KeyError for an unknown task."""
        for container in self.containers:
            if any(instance.task == task for instance in container.instances):
                return container.number
        raise KeyError(task)
