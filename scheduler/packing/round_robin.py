"""Heron's round robin packing: a fixed number of containers, each component dealt over all of them."""

from __future__ import annotations

from ardea.config import Settings
from ardea.plan import LogicalPlan, PackingPlan
from ardea.scheduler.packing.containers import OpenContainer, check, finish, no_room, open_container, spread
from ardea.scheduler.packing.executors import Executor, executors_of
from ardea.scheduler.packing.repack import Repack, executors_after
from ardea.scheduler.packing.rules import Rules


def largest_first(executor: Executor) -> tuple[int, str, int]:
    """Heron's order: components by the memory of a task, descending, then by name."""
    return -executor.resource.ram, executor.component, executor.number


class RoundRobinPacking:
    """Deals executors over ``topology.stmgrs`` containers; a container asks for what its own instances need."""

    name = "RoundRobin"

    def pack(self, plan: LogicalPlan) -> PackingPlan:
        """Deals each component in turn, the one with the largest tasks first, past containers that are full."""
        settings = Settings.of(plan.config)
        rules, executors = Rules.of(settings), sorted(executors_of(plan), key=largest_first)
        check(plan, executors, rules, containers=settings.containers)
        open_containers = [OpenContainer(number, rules) for number in range(1, settings.containers + 1)]
        if left := spread(executors, open_containers):
            raise no_room(plan, left[0], len(open_containers))
        return finish(self.name, open_containers)

    def repack(self, current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
        """Keeps what can stay and moves only what would leave a component unevenly spread."""
        return repack_evenly(self.name, current, plan, Settings.of(plan.config), highest=highest)


def repack_evenly(
    name: str,
    current: PackingPlan,
    plan: LogicalPlan,
    settings: Settings,
    *,
    highest: int,
    slots: int | None = None,
) -> PackingPlan:
    """Repacks into exactly ``settings.containers`` containers; TopologyError if they cannot hold the topology."""
    rules, executors = Rules.of(settings), executors_after(current, plan, highest)
    check(plan, executors, rules, containers=settings.containers, slots=slots)
    work = Repack(current, executors, rules)
    work.keep(settings.containers)
    opened = [
        open_container(work.open_containers, rules).number
        for _ in range(settings.containers - len(work.open_containers))
    ]
    if left := spread(work.pending, work.open_containers):
        raise no_room(plan, left[0], len(work.open_containers))
    work.level(opened)
    return finish(name, work.open_containers)
