"""Containers while they are being filled, and the ways to fill them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count, groupby

from ardea.errors import TopologyError
from ardea.plan import ContainerPlan, LogicalPlan, PackingPlan, Resource
from ardea.plan.resource import NOTHING, total
from ardea.scheduler.packing.amounts import format_bytes, format_resource
from ardea.scheduler.packing.executors import Executor
from ardea.scheduler.packing.rules import MIN_INSTANCE_RAM, Rules


class OpenContainer:
    """One container, its executors by key, and how many of each component it holds."""

    __slots__ = ("counts", "executors", "number", "rules", "tasks", "used")

    def __init__(self, number: int, rules: Rules) -> None:
        self.number = number
        self.rules = rules
        self.executors: dict[tuple[str, int], Executor] = {}
        self.counts: Counter[str] = Counter()
        self.tasks = 0
        self.used = NOTHING

    def fits(self, executor: Executor) -> bool:
        """Whether the rules allow ``executor`` here, beside what is here already."""
        return self.rules.allow(self.tasks + len(executor.tasks), self.used + executor.need)

    def add(self, executor: Executor) -> None:
        """Puts it here; the caller has asked :meth:`fits`."""
        self.executors[executor.key] = executor
        self.counts[executor.component] += 1
        self.tasks += len(executor.tasks)
        self.used += executor.need

    def remove(self, executor: Executor) -> None:
        """Takes it out again."""
        need = executor.need
        del self.executors[executor.key]
        self.counts[executor.component] -= 1
        self.tasks -= len(executor.tasks)
        self.used = Resource(self.used.cpu - need.cpu, self.used.ram - need.ram, self.used.disk - need.disk)

    def plan(self) -> ContainerPlan:
        """The finished container, instances by task id."""
        instances = tuple(sorted(i for executor in self.executors.values() for i in executor.instances()))
        overhead = self.rules.overhead(total(i.resource for i in instances))
        return ContainerPlan(self.number, instances, overhead)


def finish(algorithm: str, open_containers: Iterable[OpenContainer]) -> PackingPlan:
    """The plan, containers in order of their number."""
    return PackingPlan(algorithm, tuple(b.plan() for b in sorted(open_containers, key=lambda b: b.number)))


def open_container(open_containers: list[OpenContainer], rules: Rules) -> OpenContainer:
    """One more container, under the lowest number that is free."""
    taken = {b.number for b in open_containers}
    open_containers.append(OpenContainer(next(number for number in count(1) if number not in taken), rules))
    return open_containers[-1]


def same_size(executor: Executor) -> tuple[Resource, int]:
    """Executors that agree in this are refused by the same containers."""
    return executor.resource, len(executor.tasks)


def first_fit(executors: Iterable[Executor], open_containers: list[OpenContainer], rules: Rules) -> None:
    """Each into the first container with room for it; opens another when none has."""
    for _, run in groupby(executors, key=same_size):
        position = 0
        for executor in run:
            while position < len(open_containers) and not open_containers[position].fits(executor):
                position += 1
            target = (
                open_containers[position] if position < len(open_containers) else open_container(open_containers, rules)
            )
            target.add(executor)


def spread(executors: Iterable[Executor], open_containers: Sequence[OpenContainer]) -> list[Executor]:
    """Each to the container with the fewest executors of its component, then of all, that has room.

    Over empty containers without limits that is round robin.

    Returns:
        The executors that no container has room for.
    """
    left: list[Executor] = []
    for (component, _), run in groupby(executors, key=lambda e: (e.component, same_size(e))):
        heap = [(b.counts[component], len(b.executors), b.number, b) for b in open_containers]
        heapq.heapify(heap)
        for executor in run:
            # A container that refuses one executor refuses all of its size.
            while heap and not heap[0][3].fits(executor):
                heapq.heappop(heap)
            if not heap:
                left.append(executor)
                continue
            target = heap[0][3]
            target.add(executor)
            heapq.heapreplace(heap, (target.counts[component], len(target.executors), target.number, target))
    return left


def check(
    plan: LogicalPlan, executors: Sequence[Executor], rules: Rules, *, containers: int = 1, slots: int | None = None
) -> None:
    """Refuses, all problems at once, what no placement could satisfy; ``slots`` None is any number.

    Of a component whose executors are too large the first is named.

    Raises:
        TopologyError: An instance too small to start, an executor larger than a container, or more
            containers than executors or slots.
    """
    problems: dict[str, str] = {}
    for component in plan:
        if component.resource.ram < MIN_INSTANCE_RAM:
            problems[
                f"component {component.name!r}: a task with {format_bytes(component.resource.ram)} of RAM cannot "
                f"start; the least is {format_bytes(MIN_INSTANCE_RAM)}"
            ] = "Check the unit of ram: it is bytes, or a text such as '256MB'."
    refused: set[str] = set()
    for executor in executors:
        if executor.component not in refused and (refusal := rules.refusal(executor)) is not None:
            refused.add(executor.component)
            problems[refusal] = (
                "Raise the limit, or give the component more executors (par), so that fewer tasks must stay together."
            )
    if containers > len(executors):
        problems[f"topology {plan.name!r} asks for {containers} containers and has {len(executors)} executors"] = (
            "Ask for fewer containers (topology.stmgrs, --containers) or more executors (par)."
        )
    if slots is not None and containers > slots:
        problems[f"topology {plan.name!r} asks for {containers} containers and its node has {slots} slots"] = (
            "Ask for fewer containers, raise supervisor.slots.ports, or choose RoundRobin, which knows no slots."
        )
    if problems:
        raise TopologyError(list(problems), hint=" ".join(dict.fromkeys(problems.values())))


def no_room(plan: LogicalPlan, executor: Executor, containers: int) -> TopologyError:
    """The error for an executor that a fixed number of containers has no room left for."""
    problem = (
        f"topology {plan.name!r}: executor {executor.name} ({format_resource(executor.need)}) finds no room in the "
        f"{containers} containers, within their limits (topology.container.max.*)"
    )
    return TopologyError(
        [problem],
        hint="Ask for more containers, raise the limit, or choose ResourceCompliantRR, which adds containers itself.",
    )
