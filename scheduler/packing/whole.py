"""Repacking where a container cannot take in another task without being replaced: new tasks go into new containers."""

from __future__ import annotations

from dataclasses import replace

from ardea.config import Settings
from ardea.plan import LogicalPlan, PackingPlan
from ardea.scheduler.packing.containers import OpenContainer, check, finish, open_container
from ardea.scheduler.packing.executors import Executor
from ardea.scheduler.packing.repack import Repack, executors_after
from ardea.scheduler.packing.round_robin import largest_first
from ardea.scheduler.packing.rules import Rules


def repack_whole(current: PackingPlan, plan: LogicalPlan, *, highest: int = 0) -> PackingPlan:
    """Whatever goes on stays where it is; no container gets another task.

    New containers are no larger than the largest that there is, in tasks and within the configured limits; each new
    executor goes into the first of them that has room.  Containers that become empty are given up.

    Args:
        current: what runs.
        plan: the wanted topology, of the same configuration.
        highest: the highest task id that the topology has ever used.

    Raises:
        TopologyError: an executor fits into no container.
    """
    executors = executors_after(current, plan, highest)
    rules = Rules.of(Settings.of(plan.config))
    check(plan, executors, rules)
    work = Repack(current, executors, rules)
    work.keep()
    largest = max(len(container.instances) for container in current.containers)
    most = min(rules.max_instances, max(largest, *(len(e.tasks) for e in work.pending), 1))
    fresh: list[OpenContainer] = []
    for executor in sorted(work.pending, key=largest_first):
        _room(executor, fresh, work.open_containers, replace(rules, max_instances=most)).add(executor)
    work.drop_empty()
    return finish(current.algorithm, work.open_containers)


def _room(
    executor: Executor, fresh: list[OpenContainer], open_containers: list[OpenContainer], rules: Rules
) -> OpenContainer:
    for each in fresh:
        if each.fits(executor):
            return each
    fresh.append(open_container(open_containers, rules))
    return fresh[-1]
