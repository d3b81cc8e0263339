"""Fitting a running topology's plan to a new logical plan while moving as little as possible.

No living task changes its id.  A task changes its container only where its executor now spans two, its
container goes or has no room for it any more, or its component would otherwise be unevenly spread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from ardea.plan import LogicalPlan, PackingPlan
from ardea.scheduler.packing.containers import OpenContainer, spread
from ardea.scheduler.packing.executors import Executor, split
from ardea.scheduler.packing.rules import Rules


def executors_after(current: PackingPlan, plan: LogicalPlan, highest: int) -> list[Executor]:
    """The executors of ``plan`` over the tasks that live and new ones.

    A component that shrinks loses its highest indexes; new tasks get ids above ``highest``, the highest
    ever used, and above all of ``current``.
    """
    living: dict[str, list[int]] = {}
    for instance in sorted(current.instances, key=lambda i: i.index):
        living.setdefault(instance.component, []).append(instance.task)
        highest = max(highest, instance.task)
    executors: list[Executor] = []
    for component in plan:
        tasks = living.get(component.name, [])[: component.tasks]
        missing = component.tasks - len(tasks)
        tasks.extend(range(highest + 1, highest + 1 + missing))
        highest += missing
        executors.extend(split(component, tasks))
    return executors


class Repack:
    """One repacking: the containers that stay, and the executors that are still to be placed."""

    def __init__(self, current: PackingPlan, executors: Sequence[Executor], rules: Rules) -> None:
        self._container = {i.task: c.number for c in current.containers for i in c.instances}
        self._executors = executors
        self._changed = _changed(current, executors)
        self.rules = rules
        self.open_containers = [OpenContainer(container.number, rules) for container in current.containers]
        self.pending: list[Executor] = []

    def keep(self, containers: int | None = None) -> None:
        """Leaves every executor where most of its tasks are, if there is room; the rest is pending.

        ``containers``: no more than so many stay, those with the most living tasks; None keeps all.
        """
        if containers is not None and len(self.open_containers) > containers:
            self._drop(containers)
        open_containers = {b.number: b for b in self.open_containers}
        for executor in sorted(self._executors, key=lambda e: (e.need.ram, e.need.cpu, e.need.disk, e.tasks)):
            home = open_containers.get(self._home(executor, open_containers))
            if home is not None and home.fits(executor):
                home.add(executor)
            else:
                self.pending.append(executor)
        self.pending.sort(key=lambda e: e.key)

    def level(self, opened: Collection[int]) -> None:
        """Evens out what has changed, and gives the containers ``opened``, and empty ones, their share.

        Afterwards the containers' executors of a component differ by at most one, as far as there is room.
        """
        resized = bool(opened) or {b.number for b in self.open_containers} != set(self._container.values())
        names = sorted({e.component for e in self._executors})
        for name in names:
            if resized or name in self._changed:
                self._level_component(name)
        self._fill([b for b in self.open_containers if b.number in opened or not b.executors])

    def drop_empty(self, least: int = 0) -> None:
        """Gives up containers without executors while more than ``least`` remain, the highest first."""
        for number in sorted((b.number for b in self.open_containers if not b.executors), reverse=True):
            if len(self.open_containers) > least:
                self.open_containers = [b for b in self.open_containers if b.number != number]

    def _drop(self, containers: int) -> None:
        living = Counter(self._container.get(task, 0) for e in self._executors for task in e.tasks)
        keep = sorted(self.open_containers, key=lambda b: (-living[b.number], b.number))[:containers]
        self.open_containers = sorted(keep, key=lambda b: b.number)

    def _home(self, executor: Executor, open_containers: Collection[int]) -> int:
        """The container that holds most of its tasks, the lowest of several; 0 if none does."""
        votes = Counter(self._container.get(task, 0) for task in executor.tasks)
        return max((n for n in votes if n in open_containers), key=lambda number: (votes[number], -number), default=0)

    def _level_component(self, name: str) -> None:
        holders = [b for b in self.open_containers if b.counts[name]]
        share = sum(b.counts[name] for b in holders) // len(self.open_containers)
        for source in sorted(holders, key=lambda b: (-b.counts[name], -len(b.executors), b.number)):
            if source.counts[name] <= share:
                return
            own = sorted((e for e in source.executors.values() if e.component == name), key=lambda e: e.number)
            for executor in own[share:]:
                source.remove(executor)
            for executor in own[share:]:
                better = [b for b in self.open_containers if b.counts[name] < source.counts[name]]
                if spread([executor], better):
                    source.add(executor)

    def _fill(self, targets: list[OpenContainer]) -> None:
        """Moves executors from the fullest containers to ``targets`` until these are no more than one behind."""
        while targets:
            target = min(targets, key=lambda b: (len(b.executors), b.number))
            source = max(self.open_containers, key=lambda b: (len(b.executors), -b.number))
            if len(source.executors) - len(target.executors) < 2:
                return
            for executor in sorted(source.executors.values(), key=lambda e: e.tasks, reverse=True):
                # Only a component of which the target has less: moving another would make that one uneven.
                if source.counts[executor.component] > target.counts[executor.component] and target.fits(executor):
                    source.remove(executor)
                    target.add(executor)
                    break
            else:
                targets.remove(target)


def _changed(current: PackingPlan, executors: Sequence[Executor]) -> frozenset[str]:
    """Components whose executors are not what they were."""
    before: dict[tuple[str, int], list[int]] = {}
    for instance in sorted(current.instances, key=lambda i: i.index):
        before.setdefault((instance.component, instance.executor), []).append(instance.task)
    after = {e.key: list(e.tasks) for e in executors}
    return frozenset(key[0] for key in before.keys() | after.keys() if before.get(key) != after.get(key))
