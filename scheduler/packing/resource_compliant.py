"""Heron's resource-compliant round robin: deals within limits, and adds containers until all is within them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ardea.config import Settings
from ardea.plan import LogicalPlan, PackingPlan
from ardea.plan.resource import total
from ardea.scheduler.packing.containers import OpenContainer, check, finish, open_container, spread
from ardea.scheduler.packing.executors import Executor, executors_of
from ardea.scheduler.packing.repack import Repack, executors_after
from ardea.scheduler.packing.round_robin import largest_first
from ardea.scheduler.packing.rules import Rules

MAX_INSTANCES = 10
"""Heron's density: the instances of a container, unless ``topology.container.max.instances`` says otherwise."""


class ResourceCompliantPacking:
    """At least ``topology.stmgrs`` containers, as many more as the limits need."""

    name = "ResourceCompliantRR"

    def pack(self, plan: LogicalPlan) -> PackingPlan:
        """Deals anew with more containers until everything fits; one container an executor always does."""
        settings = Settings.of(plan.config)
        rules = Rules.of(settings, MAX_INSTANCES)
        executors = sorted(executors_of(plan), key=largest_first)
        check(plan, executors, rules, containers=settings.containers)
        containers = min(max(settings.containers, _fewest(executors, rules)), len(executors))
        while True:
            open_containers = [OpenContainer(number, rules) for number in range(1, containers + 1)]
            if not spread(executors, open_containers):
                return finish(self.name, open_containers)
            # Geometric, so that ten thousand tasks take tens of attempts; below sixteen it adds one.
            containers = min(containers + 1 + containers // 16, len(executors))

    def repack(self, current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
        """Keeps what fits, adds containers for what does not, and gives up those that become empty."""
        settings = Settings.of(plan.config)
        rules = Rules.of(settings, MAX_INSTANCES)
        executors = executors_after(current, plan, highest)
        check(plan, executors, rules, containers=settings.containers)
        work = Repack(current, executors, rules)
        work.keep()
        work.drop_empty(least=settings.containers)
        opened = [
            open_container(work.open_containers, rules).number
            for _ in range(settings.containers - len(work.open_containers))
        ]
        left = spread(work.pending, work.open_containers)
        while left:
            more = [open_container(work.open_containers, rules) for _ in range(_fewest(left, rules))]
            opened.extend(b.number for b in more)
            left = spread(left, more)
        work.level(opened)
        return finish(self.name, work.open_containers)


def _fewest(executors: Sequence[Executor], rules: Rules) -> int:
    """No fewer containers than this can hold them, whatever goes where."""
    needed, ceiling = total(e.need for e in executors), rules.ceiling
    tasks = sum(len(e.tasks) for e in executors)
    return max(
        math.ceil(tasks / rules.max_instances),
        math.ceil(needed.cpu / ceiling.cpu) if ceiling.cpu else 1,
        math.ceil(needed.ram / ceiling.ram) if ceiling.ram else 1,
        math.ceil(needed.disk / ceiling.disk) if ceiling.disk else 1,
    )
