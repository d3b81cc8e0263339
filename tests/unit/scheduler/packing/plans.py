"""Logical plans for packing tests, and what must hold of every packing plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ardea.config import Settings
from ardea.plan import ComponentPlan, ContainerPlan, InstancePlan, LogicalPlan, PackingPlan, Resource
from ardea.plan.resource import GIB, MIB, NOTHING
from ardea.scheduler.packing import EvenPacking, FirstFitDecreasingPacking, ResourceCompliantPacking, RoundRobinPacking
from ardea.scheduler.packing.rules import Rules

GB = 10**9
FIXED = (EvenPacking(), RoundRobinPacking())
GROWING = (ResourceCompliantPacking(), FirstFitDecreasingPacking())
ALL = FIXED + GROWING


def component(name: str, executors: int, tasks: int | None = None, resource: Resource | None = None) -> ComponentPlan:
    return ComponentPlan(name, "bolt", object, executors, tasks or executors, resource=resource or Resource())


def topology(*components: ComponentPlan, **config: Any) -> LogicalPlan:
    """``stmgrs=2`` sets ``topology.stmgrs``; every other key is given as ``config={...}``."""
    keys = dict(config.get("config", {}))
    if "stmgrs" in config:
        keys["topology.stmgrs"] = config["stmgrs"]
    return LogicalPlan("t", tuple(sorted(components, key=lambda c: c.name)), keys)


def storms_example() -> LogicalPlan:
    """Two workers; blue-spout 2; green-bolt 2 executors with 4 tasks; yellow-bolt 6."""
    return topology(component("blue-spout", 2), component("green-bolt", 2, 4), component("yellow-bolt", 6), stmgrs=2)


def herons_example() -> LogicalPlan:
    """Two containers; three spouts of 5 GB and a bolt of 10 GB."""
    return topology(
        component("bolt", 1, resource=Resource(1, 10 * GB, GIB)),
        component("spout", 3, resource=Resource(1, 5 * GB, GIB)),
        stmgrs=2,
    )


def placed(plan: LogicalPlan, *containers: str) -> PackingPlan:
    """A plan by hand, one task an executor: ``placed(plan, "a-0 a-1", "b-0")`` has two containers."""
    ids = plan.task_ids()
    result = []
    for number, names in enumerate(containers, 1):
        instances = []
        for name in names.split():
            owner, index = name.split("-")
            task = ids[owner][int(index)]
            instances.append(InstancePlan(task, owner, int(index), int(index), plan[owner].resource))
        result.append(
            ContainerPlan(number, tuple(sorted(instances)), Rules.of(Settings.of(plan.config)).overhead(NOTHING))
        )
    return PackingPlan("by hand", tuple(result))


def names(plan: PackingPlan) -> dict[int, str]:
    """The opposite: container -> its instances' names."""
    return {c.number: " ".join(sorted(i.name for i in c.instances)) for c in plan.containers}


def configured(plan: LogicalPlan, config: Mapping[str, Any]) -> LogicalPlan:
    return replace(plan, config={**plan.config, **config})


def runs(plan: PackingPlan) -> dict[int, list[list[int]]]:
    """Container -> its executors' tasks, ascending."""
    result: dict[int, list[list[int]]] = {}
    for container in plan.containers:
        executors: dict[tuple[str, int], list[int]] = {}
        for instance in container.instances:
            executors.setdefault((instance.component, instance.executor), []).append(instance.task)
        result[container.number] = sorted(executors.values())
    return result


def sizes(plan: PackingPlan) -> list[int]:
    """Executors of each container, ascending."""
    return sorted(len(executors) for executors in runs(plan).values())


def spread_of(plan: PackingPlan, name: str) -> list[int]:
    """Executors of one component in each container."""
    return [len({i.executor for i in c.instances if i.component == name}) for c in plan.containers]


def moved(before: PackingPlan, after: PackingPlan) -> set[int]:
    """Tasks that live in both plans, in different containers."""
    old = {i.task: c.number for c in before.containers for i in c.instances}
    new = {i.task: c.number for c in after.containers for i in c.instances}
    return {task for task in old.keys() & new.keys() if old[task] != new[task]}


def assert_sound(packing: PackingPlan, plan: LogicalPlan) -> None:
    """All tasks exactly once, as many executors as asked for, none split, no container empty or numbered twice."""
    tasks = Counter(i.task for c in packing.containers for i in c.instances)
    assert set(tasks.values()) == {1}
    indexes = Counter((i.component, i.index) for i in packing.instances)
    assert indexes == Counter((c.name, index) for c in plan for index in range(c.tasks))
    home: dict[tuple[str, int], int] = {}
    members: dict[tuple[str, int], list[int]] = {}
    for container in packing.containers:
        assert container.instances
        for instance in container.instances:
            key = (instance.component, instance.executor)
            assert home.setdefault(key, container.number) == container.number, f"{key} is split"
            members.setdefault(key, []).append(instance.index)
            assert instance.resource == plan[instance.component].resource
    assert Counter(name for name, _ in members) == Counter({c.name: c.executors for c in plan})
    assert all(sorted(m) == list(range(min(m), min(m) + len(m))) for m in members.values()), "not neighbours"
    assert len({c.number for c in packing.containers}) == len(packing.containers)


def assert_within_limits(packing: PackingPlan, plan: LogicalPlan, default_instances: int | None = None) -> None:
    settings = Settings.of(plan.config)
    for container in packing.containers:
        need, most = container.required, settings.max_instances or default_instances
        assert most is None or len(container.instances) <= most
        assert settings.max_ram is None or need.ram <= settings.max_ram
        assert settings.max_cpu is None or need.cpu <= settings.max_cpu + 1e-6
        assert settings.max_disk is None or need.disk <= settings.max_disk


def assert_even(packing: PackingPlan, names: Iterable[str]) -> None:
    for name in names:
        counts = spread_of(packing, name)
        assert max(counts) - min(counts) <= 1, f"{name}: {counts}"


@st.composite
def components(draw: st.DrawFn, *, grouped: bool = True) -> list[ComponentPlan]:
    """One to five components; ``grouped``: executors may hold several tasks."""
    names = draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True))
    result = []
    for name in names:
        executors = draw(st.integers(1, 12))
        tasks = draw(st.integers(executors, executors * 3)) if grouped else executors
        ram = draw(st.integers(64, 2048)) * MIB
        cpu = draw(st.integers(1, 30)) / 10
        result.append(component(name, executors, tasks, Resource(cpu, ram, 100 * MIB)))
    return result


@st.composite
def topologies(draw: st.DrawFn, *, grouped: bool = True) -> LogicalPlan:
    chosen = draw(components(grouped=grouped))
    containers = draw(st.integers(1, min(6, sum(c.executors for c in chosen))))
    return topology(*chosen, stmgrs=containers)


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    """Some of the limits, none below what the largest executor above needs (3 tasks, and the managers)."""
    return draw(
        st.fixed_dictionaries(
            {},
            optional={
                "topology.container.max.instances": st.integers(3, 15),
                "topology.container.max.ram.hint": st.integers(7 * 1024, 20 * 1024).map(lambda m: m * MIB),
                "topology.container.max.cpu.hint": st.integers(11, 30),
                "topology.container.max.disk.hint": st.integers(2000, 4000).map(lambda m: m * MIB),
            },
        )
    )
