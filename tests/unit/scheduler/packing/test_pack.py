"""Packing for the first time: worked examples, invariants, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.config import Settings
from ardea.config_check import validate
from ardea.errors import ConfigError, TopologyError
from ardea.plan import Resource
from ardea.plan.resource import GIB, MIB, total
from ardea.scheduler.packing import (
    EvenPacking,
    FirstFitDecreasingPacking,
    ResourceCompliantPacking,
    RoundRobinPacking,
    packing_for,
)
from ardea.scheduler.packing.resource_compliant import MAX_INSTANCES
from ardea.scheduler.packing.rules import Rules
from tests.unit.scheduler.packing import plans
from tests.unit.scheduler.packing.plans import (
    ALL,
    FIXED,
    GB,
    GROWING,
    assert_even,
    assert_sound,
    assert_within_limits,
    component,
    configured,
    herons_example,
    runs,
    sizes,
    spread_of,
    storms_example,
    topology,
)

algorithms = pytest.mark.parametrize("algorithm", ALL, ids=lambda a: a.name)


def test_storms_worked_parallelism():
    packing = EvenPacking().pack(storms_example())
    assert runs(packing) == {
        1: [[1], [3, 4], [7], [9], [11]],
        2: [[2], [5, 6], [8], [10], [12]],
    }
    for container in packing.containers:
        names = [i.component for i in container.instances]
        assert [names.count(n) for n in ("blue-spout", "green-bolt", "yellow-bolt")] == [1, 2, 3]


@algorithms
def test_no_algorithm_asks_for_more_than_the_instances_need(algorithm):
    """25 GB where equal containers would reserve 30."""
    packing = algorithm.pack(herons_example())
    assert total(i.resource for i in packing.instances).ram == 25 * GB
    assert sum(c.required.ram - c.overhead.ram for c in packing.containers) == 25 * GB
    if algorithm.name in {"Even", "RoundRobin", "ResourceCompliantRR"}:
        assert [sum(i.resource.ram for i in c.instances) // GB for c in packing.containers] == [15, 10]


def test_round_robin_deals_the_components_with_the_largest_tasks_first():
    plan = topology(
        component("a", 3, resource=Resource(ram=64 * MIB)), component("b", 3, resource=Resource(ram=GIB)), stmgrs=2
    )
    assert runs(RoundRobinPacking().pack(plan)) == {1: [[2], [4], [6]], 2: [[1], [3], [5]]}


def test_a_smaller_executor_goes_where_a_larger_had_no_room():
    plan = topology(
        component("a", 4, 7),
        component("x", 1, 6, Resource(ram=GIB)),
        stmgrs=3,
        config={"topology.container.max.instances": 7},
    )
    packing = RoundRobinPacking().pack(plan)
    assert runs(packing)[1] == [[7], [8, 9, 10, 11, 12, 13]]
    assert spread_of(packing, "a") == [1, 2, 1]


def test_resource_compliant_adds_containers_until_the_limits_hold():
    plan = topology(component("a", 25), stmgrs=2)
    assert sizes(ResourceCompliantPacking().pack(plan)) == [8, 8, 9]
    # No two of the large ones can share, which the sums do not show: two containers are not enough, three are.
    tight = topology(
        component("large", 3, resource=Resource(1, 600 * MIB, 0)),
        component("small", 4, resource=Resource(1, 64 * MIB, 0)),
        config={"topology.container.max.ram.hint": 1384 * MIB},
    )
    packing = ResourceCompliantPacking().pack(tight)
    assert [spread_of(packing, "large"), spread_of(packing, "small")] == [[1, 1, 1], [2, 1, 1]]


def test_first_fit_decreasing_fills_the_gaps_of_the_first_containers():
    plan = topology(
        component("large", 2, resource=Resource(1, 3 * GIB, 0)),
        component("small", 4, resource=Resource(1, GIB, 0)),
        config={"topology.container.max.ram.hint": 4 * GIB + 384 * MIB},
    )
    packing = FirstFitDecreasingPacking().pack(plan)
    assert [[i.name for i in c.instances] for c in packing.containers] == [
        ["large-0", "small-0"],
        ["large-1", "small-1"],
        ["small-2", "small-3"],
    ]


def test_first_fit_decreasing_can_sort_by_cpu():
    plan = topology(
        component("busy", 1, resource=Resource(3, 64 * MIB, 0)),
        component("large", 1, resource=Resource(1, GIB, 0)),
        config={"topology.container.max.cpu.hint": 4},
    )
    assert [c.instances[0].component for c in FirstFitDecreasingPacking().pack(plan).containers] == ["large", "busy"]
    plan = configured(plan, {"topology.packing.ffd.sorting.strategy": "CPU_FIRST"})
    assert [c.instances[0].component for c in FirstFitDecreasingPacking().pack(plan).containers] == ["busy", "large"]


def test_first_fit_decreasing_without_hints_takes_ten_default_instances_or_the_largest_executor():
    plan = topology(component("huge", 2, resource=Resource(1, 40 * GIB, 0)), component("tiny", 20))
    packing = FirstFitDecreasingPacking().pack(plan)
    assert [[i.component for i in c.instances].count("huge") for c in packing.containers] == [1, 1, 0, 0]
    assert [len(c.instances) for c in packing.containers] == [1, 1, 10, 10]


@algorithms
@given(plan=plans.topologies())
def test_every_task_is_packed_once_and_no_executor_is_split(algorithm, plan):
    packing = algorithm.pack(configured(plan, {"supervisor.slots.ports": 6}))
    assert_sound(packing, plan)
    assert packing.algorithm == algorithm.name
    if algorithm in FIXED:
        assert [c.number for c in packing.containers] == list(range(1, plan.config["topology.stmgrs"] + 1))
    else:
        assert_within_limits(packing, plan, default_instances=10)


@pytest.mark.parametrize("algorithm", FIXED, ids=lambda a: a.name)
@given(plan=plans.topologies())
def test_executors_of_a_component_and_of_all_differ_by_at_most_one_between_containers(algorithm, plan):
    packing = algorithm.pack(configured(plan, {"supervisor.slots.ports": 6}))
    assert_even(packing, [c.name for c in plan])
    assert sizes(packing)[-1] - sizes(packing)[0] <= 1


@given(plan=plans.topologies(grouped=False), limits=plans.limits())
def test_resource_compliant_is_as_even_as_the_limits_allow(plan, limits):
    """A container with two executors of a component less than another one has no room for a second."""
    plan = configured(plan, limits)
    packing, rules = ResourceCompliantPacking().pack(plan), Rules.of(Settings.of(plan.config), MAX_INSTANCES)
    for part in plan:
        counts = spread_of(packing, part.name)
        for container, count in zip(packing.containers, counts, strict=True):
            if count < max(counts) - 1:
                used = total([part.resource, *(i.resource for i in container.instances)])
                assert not rules.allow(len(container.instances) + 1, used)


@algorithms
@given(plan=plans.topologies(), limits=plans.limits())
def test_limits_hold_or_the_topology_is_refused(algorithm, plan, limits):
    plan = configured(plan, limits | {"supervisor.slots.ports": 6})
    try:
        packing = algorithm.pack(plan)
    except TopologyError:
        assert algorithm in FIXED, "algorithms that add containers always find room"
        return
    assert_sound(packing, plan)
    assert_within_limits(packing, plan, default_instances=10 if algorithm in GROWING else None)


@algorithms
@given(plan=plans.topologies(), seed=st.randoms(use_true_random=False))
def test_the_same_topology_is_packed_the_same_whatever_the_order_of_its_configuration(algorithm, plan, seed):
    plan = configured(plan, {"supervisor.slots.ports": 6, "topology.stmgr.ram": GIB})
    items = list(plan.config.items())
    seed.shuffle(items)
    assert algorithm.pack(plan) == algorithm.pack(topology(*plan.components, config=dict(items)))


@algorithms
def test_an_executor_larger_than_a_container_is_refused_by_name_with_both_numbers(algorithm):
    plan = topology(component("split", 1, 4), config={"topology.container.max.instances": 3})
    with pytest.raises(TopologyError) as caught:
        algorithm.pack(plan)
    assert "split[1-4]" in caught.value.message
    assert "its 4 tasks must stay together; a container holds at most 3" in caught.value.message
    assert "par" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("key", "limit", "text"),
    [
        ("topology.container.max.ram.hint", GIB, "its 4 tasks must stay together and need 2.38 GiB of RAM with"),
        (
            "topology.container.max.cpu.hint",
            4,
            "need 5 of CPU with the container's managers; a container has at most 4 ",
        ),
        ("topology.container.max.disk.hint", GIB, "need 5 GiB of disk with"),
    ],
)
@algorithms
def test_the_limit_that_refuses_an_executor_is_named(algorithm, key, limit, text):
    plan = topology(component("split", 1, 4), config={key: limit})
    with pytest.raises(TopologyError) as caught:
        algorithm.pack(plan)
    assert key in caught.value.message
    assert text in caught.value.message


@pytest.mark.parametrize("algorithm", [*FIXED, ResourceCompliantPacking()], ids=lambda a: a.name)
def test_more_containers_than_executors_are_refused(algorithm):
    with pytest.raises(TopologyError, match="asks for 3 containers and has 2 executors"):
        algorithm.pack(topology(component("a", 2, 8), stmgrs=3))


def test_a_single_task_that_is_too_large_is_refused_in_the_singular():
    plan = topology(component("a", 2, resource=Resource(ram=GIB)), config={"topology.container.max.ram.hint": GIB})
    with pytest.raises(TopologyError, match=r"executor a\[1\] fits into no container: its task needs 1.38 GiB of RAM"):
        RoundRobinPacking().pack(plan)


def test_all_problems_are_reported_at_once():
    plan = topology(
        component("a", 1, 4),
        component("b", 1, resource=Resource(ram=512)),
        stmgrs=5,
        config={"topology.container.max.instances": 2},
    )
    with pytest.raises(TopologyError) as caught:
        EvenPacking().pack(plan)
    assert len(caught.value.problems) == 4
    assert "component 'b': a task with 512 B of RAM cannot start; the least is 64 MiB" in caught.value.problems


def test_even_needs_a_slot_for_each_container():
    with pytest.raises(TopologyError, match="asks for 5 containers and its node has 4 slots"):
        EvenPacking().pack(topology(component("a", 5), stmgrs=5))
    many = topology(component("a", 5), stmgrs=5, config={"supervisor.slots.ports": [6700, 6701, 6702, 6703, 6704]})
    assert sizes(EvenPacking().pack(many)) == [1] * 5


def test_even_refuses_a_container_over_its_limit():
    plan = topology(component("a", 4), component("b", 1), stmgrs=2, config={"topology.container.max.instances": 2})
    with pytest.raises(TopologyError, match=r"executor b\[5\].*no room in the 2 containers"):
        EvenPacking().pack(plan)


def test_workers_and_stmgrs_mean_the_same():
    for key in ("topology.workers", "topology.stmgrs"):
        plan = topology(component("a", 4), config=validate({key: 3}, "topology t"))
        assert len(RoundRobinPacking().pack(plan).containers) == 3
    assert len(RoundRobinPacking().pack(topology(component("a", 4))).containers) == 1


def test_managers_take_what_the_configuration_says():
    packing = RoundRobinPacking().pack(topology(component("a", 2)))
    assert packing.containers[0].overhead == Resource(1.0, 384 * MIB, GIB)
    assert packing.containers[0].required == Resource(3.0, 384 * MIB + GIB, 3 * GIB)
    plan = topology(
        component("a", 10),
        config={
            "topology.stmgr.ram": GIB,
            "topology.metricsmgr.ram": GIB,
            "topology.container.cpu.padding": 0.25,
            "topology.container.ram.padding": 100 * MIB,
            "topology.container.padding.percentage": 10,
        },
    )
    # A tenth of 10 cores, 5 GiB and 10 GiB, each more than its padding.
    assert RoundRobinPacking().pack(plan).containers[0].overhead == Resource(1.0, 2 * GIB + 512 * MIB, GIB)


@pytest.mark.parametrize(
    ("value", "algorithm"),
    [
        ("RoundRobin", RoundRobinPacking),
        ("Even", EvenPacking),
        ("ResourceCompliantRR", ResourceCompliantPacking),
        ("FirstFitDecreasingPacking", FirstFitDecreasingPacking),
        ("org.apache.heron.packing.roundrobin.RoundRobinPacking", RoundRobinPacking),
        ("org.apache.heron.packing.roundrobin.ResourceCompliantRRPacking", ResourceCompliantPacking),
        ("org.apache.heron.packing.binpacking.FirstFitDecreasingPacking", FirstFitDecreasingPacking),
    ],
)
def test_algorithms_are_found_by_herons_names(value, algorithm):
    assert type(packing_for({"heron.class.packing.algorithm": value})) is algorithm


def test_round_robin_is_the_default():
    assert isinstance(packing_for({}), RoundRobinPacking)


def test_an_unknown_algorithm_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="no packing algorithm 'RoundRobbin'") as caught:
        packing_for({"heron.class.packing.algorithm": "RoundRobbin"})
    assert caught.value.hint == "Did you mean 'RoundRobin'?"


def test_an_installed_algorithm_is_found_by_its_entry_point(tmp_path, monkeypatch):
    info = tmp_path / "other-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ardea.packing]\nOther = ardea.scheduler.packing.even:EvenPacking\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(packing_for({"heron.class.packing.algorithm": "Other"}), EvenPacking)


@algorithms
def test_ten_thousand_tasks_ask_each_limit_a_bounded_number_of_times(algorithm, monkeypatch):
    """What would make packing quadratic is asking every container about every executor."""
    from ardea.scheduler.packing.containers import OpenContainer

    asked = 0
    fits = OpenContainer.fits

    def counted(self, executor):
        nonlocal asked
        asked += 1
        return fits(self, executor)

    monkeypatch.setattr(OpenContainer, "fits", counted)
    plan = topology(component("a", 5000), component("b", 2000, 3000), component("c", 2000), stmgrs=4)
    packing = algorithm.pack(plan)
    assert len(packing.instances) == 10_000
    assert asked < 30_000
