"""What ``--dry-run`` prints of a packing plan: a table for people, a stable document for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.table import Table

from ardea.plan import ContainerPlan, InstancePlan, LogicalPlan, PackingPlan, Resource
from ardea.plan.resource import total
from ardea.scheduler.packing.amounts import format_bytes, format_cpu
from ardea.scheduler.packing.executors import describe_tasks


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all containers.  ``equal`` is what containers of one size would reserve for instances."""

    executors: int
    tasks: int
    instances: Resource
    managers: Resource
    equal: Resource

    @classmethod
    def of(cls, plan: PackingPlan) -> Totals:
        """Adds up ``plan``."""
        needs = [_needs(container) for container in plan.containers]
        largest = Resource(
            max((n.cpu for n in needs), default=0.0),
            max((n.ram for n in needs), default=0),
            max((n.disk for n in needs), default=0),
        )
        return cls(
            executors=sum(1 for c in plan.containers for _ in _executors(c)),
            tasks=sum(len(c.instances) for c in plan.containers),
            instances=total(needs),
            managers=total(c.overhead for c in plan.containers),
            equal=total([largest] * len(needs)),
        )


def as_table(plan: PackingPlan, logical: LogicalPlan) -> Table:
    """A row a container; below it the sums, the managers' share, and the cost of equal containers."""
    totals = Totals.of(plan)
    table = Table(title=f"{logical.name}: {plan.algorithm} packing")
    table.add_column("Container", justify="right")
    for name in ("Executors", "Tasks"):
        table.add_column(name, justify="right")
    table.add_column("Tasks by executor", overflow="fold")
    for name in ("CPU", "RAM", "Disk"):
        table.add_column(name, justify="right")
    for container in plan.containers:
        executors = list(_executors(container))
        table.add_row(
            str(container.number),
            str(len(executors)),
            str(len(container.instances)),
            _by_component(executors),
            *_amounts(_needs(container)),
        )
    table.add_section()
    table.add_row("", str(totals.executors), str(totals.tasks), "all instances", *_amounts(totals.instances))
    table.add_row("", "", "", "managers", *_amounts(totals.managers))
    table.add_row("", "", "", "in all", *_amounts(totals.instances + totals.managers), style="bold")
    table.add_row("", "", "", "if containers were equal", *_amounts(totals.equal), style="dim")
    return table


def as_json(plan: PackingPlan, logical: LogicalPlan) -> dict[str, Any]:
    """The same as plain values: cores, bytes, container and task numbers from 1, indexes and executors from 0.

    Keys are only ever added.
    """
    totals = Totals.of(plan)
    return {
        "topology": logical.name,
        "algorithm": plan.algorithm,
        "containers": [_container(container) for container in plan.containers],
        "totals": {
            "containers": len(plan.containers),
            "executors": totals.executors,
            "tasks": totals.tasks,
            "instances": _plain(totals.instances),
            "managers": _plain(totals.managers),
            "required": _plain(totals.instances + totals.managers),
            "equal_containers": _plain(totals.equal),
        },
    }


def _container(container: ContainerPlan) -> dict[str, Any]:
    return {
        "container": container.number,
        "executors": [
            {"component": run[0].component, "executor": run[0].executor, "tasks": [i.task for i in run]}
            for run in _executors(container)
        ],
        "instances": [
            {"name": i.name, "component": i.component, "index": i.index, "task": i.task} | _plain(i.resource)
            for i in container.instances
        ],
        "resources": {
            "instances": _plain(_needs(container)),
            "managers": _plain(container.overhead),
            "required": _plain(container.required),
        },
    }


def _executors(container: ContainerPlan) -> Iterator[list[InstancePlan]]:
    ordered = sorted(container.instances, key=lambda i: (i.component, i.executor, i.index))
    for _, run in groupby(ordered, key=lambda i: (i.component, i.executor)):
        yield list(run)


def _by_component(executors: list[list[InstancePlan]]) -> str:
    lines: list[str] = []
    for component, runs in groupby(executors, key=lambda run: run[0].component):
        tasks = ([i.task for i in run] for run in runs)
        lines.append(f"{component} " + ", ".join(describe_tasks(ids) if ids[1:] else str(ids[0]) for ids in tasks))
    return "\n".join(lines)


def _needs(container: ContainerPlan) -> Resource:
    return total(i.resource for i in container.instances)


def _amounts(resource: Resource) -> tuple[str, str, str]:
    return format_cpu(resource.cpu), format_bytes(resource.ram), format_bytes(resource.disk)


def _plain(resource: Resource) -> dict[str, float | int]:
    return {"cpu": round(resource.cpu, 6), "ram": resource.ram, "disk": resource.disk}
