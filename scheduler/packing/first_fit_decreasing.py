"""Heron's first fit decreasing: few containers, the largest executors first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ardea.config import Settings
from ardea.plan import LogicalPlan, PackingPlan, Resource
from ardea.scheduler.packing.containers import OpenContainer, check, finish, first_fit
from ardea.scheduler.packing.executors import Executor, executors_of
from ardea.scheduler.packing.repack import Repack, executors_after
from ardea.scheduler.packing.resource_compliant import MAX_INSTANCES
from ardea.scheduler.packing.rules import Rules


class FirstFitDecreasingPacking:
    """As many containers as the limits make necessary; ``topology.stmgrs`` has no say.

    A container holds at most ten instances and, where no hint bounds it, what ten instances of the default
    size need or the largest executor, whichever is more.
    """

    name = "FirstFitDecreasing"

    def pack(self, plan: LogicalPlan) -> PackingPlan:
        """Each executor, by RAM or CPU descending, goes into the first container that has room."""
        settings = Settings.of(plan.config)
        executors = sorted(executors_of(plan), key=_decreasing(settings))
        rules = _rules(settings, executors)
        check(plan, executors, rules)
        open_containers: list[OpenContainer] = []
        first_fit(executors, open_containers, rules)
        return finish(self.name, open_containers)

    def repack(self, current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
        """Keeps what fits, first-fits the rest, and gives up containers that become empty."""
        settings = Settings.of(plan.config)
        executors = executors_after(current, plan, highest)
        rules = _rules(settings, executors)
        check(plan, executors, rules)
        work = Repack(current, executors, rules)
        work.keep()
        first_fit(sorted(work.pending, key=_decreasing(settings)), work.open_containers, rules)
        work.drop_empty()
        return finish(self.name, work.open_containers)


def _decreasing(settings: Settings) -> Callable[[Executor], tuple[float, float, int, int, str, int]]:
    def key(executor: Executor) -> tuple[float, float, int, int, str, int]:
        need = executor.need
        leading = (-need.ram, -need.cpu) if settings.sorting == "RAM_FIRST" else (-need.cpu, -need.ram)
        return *leading, -need.disk, -len(executor.tasks), executor.component, executor.number

    return key


def _rules(settings: Settings, executors: Sequence[Executor]) -> Rules:
    default = Resource()
    needs = [e.need for e in executors]
    room = Resource(
        max(MAX_INSTANCES * default.cpu, *(n.cpu for n in needs)),
        max(MAX_INSTANCES * default.ram, *(n.ram for n in needs)),
        max(MAX_INSTANCES * default.disk, *(n.disk for n in needs)),
    )
    return Rules.of(settings, MAX_INSTANCES, room + Rules.of(settings).overhead(room))
