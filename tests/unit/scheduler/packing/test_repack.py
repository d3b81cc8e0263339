"""Repacking: ids stay, moves are few, and what pack promises still holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import TopologyError
from ardea.plan import Resource
from ardea.plan.resource import GIB, MIB
from ardea.scheduler.packing import EvenPacking, FirstFitDecreasingPacking, ResourceCompliantPacking, RoundRobinPacking
from tests.unit.scheduler.packing import plans
from tests.unit.scheduler.packing.plans import (
    ALL,
    FIXED,
    GROWING,
    assert_even,
    assert_sound,
    assert_within_limits,
    component,
    configured,
    moved,
    names,
    placed,
    runs,
    sizes,
    topology,
)

algorithms = pytest.mark.parametrize("algorithm", ALL, ids=lambda a: a.name)
fixed = pytest.mark.parametrize("algorithm", FIXED, ids=lambda a: a.name)
SLOTS = {"supervisor.slots.ports": 6}


@fixed
def test_squeezed_executors_spread_out_as_slots_come(algorithm):
    """Storm's table, with fewer moves: it deals all nine anew, then six."""
    one = algorithm.pack(topology(component("a", 9), stmgrs=1))
    assert sizes(one) == [9]
    three = algorithm.repack(one, topology(component("a", 9), stmgrs=3))
    assert sizes(three) == [3, 3, 3]
    assert len(moved(one, three)) == 6
    four = algorithm.repack(three, topology(component("a", 9), stmgrs=4))
    assert sizes(four) == [2, 2, 2, 3]
    assert len(moved(three, four)) == 2


def test_two_executors_on_one_slot_are_rescheduled_when_two_workers_are_wanted():
    squeezed = EvenPacking().pack(topology(component("a", 2), stmgrs=1))
    assert runs(EvenPacking().repack(squeezed, topology(component("a", 2), stmgrs=2))) == {1: [[1]], 2: [[2]]}


def test_rebalancing_twelve_tasks_follows_storms_table():
    even = EvenPacking()
    packing = even.pack(topology(component("a", 6, 12), stmgrs=3))
    assert sizes(packing) == [2, 2, 2]
    packing = even.repack(packing, topology(component("a", 6, 12), stmgrs=6, config=SLOTS))
    assert sizes(packing) == [1] * 6
    packing = even.repack(packing, topology(component("a", 1, 12), stmgrs=1))
    assert sizes(packing) == [1]
    packing = even.repack(packing, topology(component("a", 8, 12), stmgrs=4))
    assert sizes(packing) == [2, 2, 2, 2]
    tasks = [len(run) for executors in runs(packing).values() for run in executors]
    assert sorted(tasks, reverse=True) == [2, 2, 2, 2, 1, 1, 1, 1]
    assert [i.task for i in packing.instances] == list(range(1, 13))


@algorithms
def test_new_tasks_get_ids_above_the_highest_ever_used_and_the_highest_indexes_go(algorithm):
    first = algorithm.pack(topology(component("a", 2), component("b", 3)))
    grown = algorithm.repack(first, topology(component("a", 4), component("b", 2), component("c", 1)), highest=9)
    tasks = {i.name: i.task for i in grown.instances}
    assert tasks == {"a-0": 1, "a-1": 2, "a-2": 10, "a-3": 11, "b-0": 3, "b-1": 4, "c-0": 12}
    # Without being told, at least the living ones are known.
    again = algorithm.repack(first, topology(component("a", 3), component("b", 1)))
    assert {i.name: i.task for i in again.instances} == {"a-0": 1, "a-1": 2, "a-2": 6, "b-0": 3}


def test_an_executor_that_would_span_two_containers_goes_where_most_of_its_tasks_are():
    before = RoundRobinPacking().pack(topology(component("a", 2, 5), stmgrs=2))
    assert runs(before) == {1: [[1, 2, 3]], 2: [[4, 5]]}
    plan = topology(component("a", 1, 5), component("b", 1), stmgrs=2)
    after = RoundRobinPacking().repack(before, plan)
    assert runs(after) == {1: [[1, 2, 3, 4, 5]], 2: [[6]]}
    assert moved(before, after) == {4, 5}


def test_the_most_of_its_tasks_decide_not_the_lowest_container():
    large = component("b", 1, resource=Resource(ram=GIB))
    before = RoundRobinPacking().pack(topology(component("a", 2, 5), large, stmgrs=2))
    assert runs(before) == {1: [[4, 5], [6]], 2: [[1, 2, 3]]}
    after = RoundRobinPacking().repack(before, topology(component("a", 1, 5), large, stmgrs=2))
    assert runs(after) == {1: [[6]], 2: [[1, 2, 3, 4, 5]]}


def test_an_unevenness_for_want_of_room_moves_nobody_sideways():
    old = topology(component("a", 4), component("b", 3), component("y", 1))
    before = placed(old, "a-0 a-1 y-0", "a-2 a-3", "b-0 b-1 b-2")
    limits = {"topology.container.max.instances": 3}
    plan = topology(component("a", 3), component("b", 3), component("y", 1), stmgrs=3, config=limits)
    assert names(RoundRobinPacking().repack(before, plan)) == {1: "a-0 a-1 y-0", 2: "a-2", 3: "b-0 b-1 b-2"}


def test_a_component_that_did_not_change_stays_although_another_made_room():
    before = placed(topology(component("a", 3), component("b", 3)), "a-0 a-1 a-2", "b-0 b-1 b-2")
    plan = topology(component("a", 3), component("b", 1), stmgrs=2)
    assert names(RoundRobinPacking().repack(before, plan)) == {1: "a-0 a-1 a-2", 2: "b-0"}


def test_the_fullest_container_gives_first():
    plan = topology(component("a", 4), component("b", 1), component("c", 1), stmgrs=3)
    before = placed(plan, "a-0 a-1", "a-2 a-3 b-0 c-0")
    assert sizes(RoundRobinPacking().repack(before, plan)) == [2, 2, 2]


def test_an_executor_whose_container_goes_moves_to_where_its_component_is_missing():
    plan = topology(component("a", 2), component("b", 3), stmgrs=2)
    after = RoundRobinPacking().repack(placed(plan, "a-1", "b-0 b-1 b-2", "a-0"), plan)
    assert names(after) == {1: "a-1 b-1", 2: "a-0 b-0 b-2"}


def test_a_new_container_takes_the_lowest_free_number():
    limits = {"topology.container.max.instances": 2}
    before = placed(topology(component("a", 2), component("b", 2)), "a-0 a-1", "b-0 b-1")
    for algorithm in GROWING:
        less = algorithm.repack(before, topology(component("b", 2), config=limits))
        assert names(less) == {2: "b-0 b-1"}
        more = algorithm.repack(less, topology(component("b", 3), config=limits))
        assert [c.number for c in more.containers] == [1, 2]


def test_first_fit_decreasing_places_the_largest_newcomer_first():
    limits = {"topology.container.max.ram.hint": 3 * GIB + 384 * MIB}
    before = placed(topology(component("m", 1)), "m-0")
    small, large = Resource(ram=GIB), Resource(ram=2 * GIB)
    plan = topology(
        component("a", 2, resource=small), component("m", 1), component("z", 1, resource=large), config=limits
    )
    assert names(FirstFitDecreasingPacking().repack(before, plan)) == {1: "m-0 z-0", 2: "a-0 a-1"}


def test_fewer_containers_drop_the_one_with_the_fewest_living_tasks():
    before = RoundRobinPacking().pack(topology(component("a", 4), component("b", 3), stmgrs=3))
    after = RoundRobinPacking().repack(before, topology(component("a", 4), component("b", 3), stmgrs=2))
    assert [c.number for c in after.containers] == [1, 2]
    assert len(moved(before, after)) == 2


def test_a_container_that_lost_everything_gets_its_share():
    before = RoundRobinPacking().pack(topology(component("a", 1), component("b", 1), component("c", 1), stmgrs=2))
    assert runs(before) == {1: [[1], [3]], 2: [[2]]}
    after = RoundRobinPacking().repack(before, topology(component("a", 1), component("c", 1), stmgrs=2))
    assert sizes(after) == [1, 1]


def test_resource_compliant_adds_a_container_only_for_what_has_no_room():
    before = ResourceCompliantPacking().pack(topology(component("a", 10)))
    after = ResourceCompliantPacking().repack(before, topology(component("a", 10), component("b", 1)))
    assert runs(after)[2][-1] == [11]
    assert_even(after, ["a", "b"])


def test_resource_compliant_gives_up_an_emptied_container_and_reuses_its_number():
    limits = {"topology.container.max.instances": 2}
    algorithm = ResourceCompliantPacking()
    before = algorithm.pack(topology(component("a", 2), component("b", 1), config=limits))
    assert runs(before) == {1: [[1], [3]], 2: [[2]]}
    less = algorithm.repack(before, topology(component("b", 1), config=limits))
    assert runs(less) == {1: [[3]]}
    more = algorithm.repack(less, topology(component("b", 3), config=limits), highest=3)
    assert [c.number for c in more.containers] == [1, 2]
    assert [i.task for i in more.instances] == [3, 4, 5]


def test_first_fit_decreasing_fills_gaps_before_it_opens_a_container():
    limits = {"topology.container.max.instances": 3}
    algorithm = FirstFitDecreasingPacking()
    before = algorithm.pack(topology(component("a", 4), component("b", 1), config=limits))
    after = algorithm.repack(before, topology(component("a", 6), component("b", 1), config=limits))
    assert moved(before, after) == set()
    assert sizes(after) == [1, 3, 3]


@algorithms
def test_larger_tasks_leave_a_container_only_as_far_as_it_is_too_small(algorithm):
    limits = {"topology.container.max.ram.hint": 2 * GIB + 384 * MIB}
    before = algorithm.pack(topology(component("a", 4), component("b", 4), stmgrs=2, config=limits))
    grown = component("b", 2, resource=Resource(ram=GIB))
    plan = topology(component("a", 4), grown, stmgrs=2, config=limits)
    after = algorithm.repack(before, plan)
    assert_sound(after, plan)
    assert_within_limits(after, plan)


@pytest.mark.parametrize("algorithm", FIXED, ids=lambda a: a.name)
def test_a_fixed_number_of_containers_without_room_is_refused(algorithm):
    limits = {"topology.container.max.instances": 2}
    before = algorithm.pack(topology(component("a", 4), stmgrs=2, config=limits))
    with pytest.raises(TopologyError, match=r"executor a\[5\].*no room in the 2 containers"):
        algorithm.repack(before, topology(component("a", 5), stmgrs=2, config=limits))


@algorithms
@given(plan=plans.topologies(), limits=plans.limits())
def test_an_unchanged_topology_stays_as_it_is(algorithm, plan, limits):
    plan = configured(plan, SLOTS | limits)
    try:
        before = algorithm.pack(plan)
    except TopologyError:
        return
    assert algorithm.repack(before, plan, highest=1000) == before


@st.composite
def histories(draw, *, grouped=True):
    """A topology and what it becomes in up to four updates, containers included."""
    return [configured(draw(plans.topologies(grouped=grouped)), SLOTS) for _ in range(draw(st.integers(2, 5)))]


@algorithms
@given(history=histories(), limits=plans.limits())
def test_any_history_keeps_ids_and_soundness(algorithm, history, limits):
    if algorithm in GROWING:
        history = [configured(plan, limits) for plan in history]
    packing = algorithm.pack(history[0])
    highest = max(i.task for i in packing.instances)
    for plan in history[1:]:
        before, packing = packing, algorithm.repack(packing, plan, highest=highest)
        assert packing == algorithm.repack(before, plan, highest=highest), "not deterministic"
        assert_sound(packing, plan)
        old = {(i.component, i.index): i.task for i in before.instances}
        for instance in packing.instances:
            expected = old.get((instance.component, instance.index))
            assert instance.task == expected if expected else instance.task > highest
        highest = max(highest, *(i.task for i in packing.instances))
        if algorithm in FIXED:
            assert len(packing.containers) == plan.config["topology.stmgrs"]
            assert_even(packing, [c.name for c in plan])
        else:
            assert_within_limits(packing, plan, default_instances=10)


def fewest_moves(counts: list[int], total: int) -> int:
    """How many must leave containers that hold ``counts`` of ``total``, all to differ by at most one."""
    share, larger = divmod(total, len(counts))
    return sum(max(0, c - share - (p < larger)) for p, c in enumerate(sorted(counts, reverse=True)))


@fixed
@given(history=histories(grouped=False))
def test_with_the_same_containers_no_task_moves_that_need_not(algorithm, history):
    """Exactly as many as evenness demands after the highest indexes are gone; none when nothing shrinks."""
    containers = min(plan.config["topology.stmgrs"] for plan in history)
    history = [configured(plan, {"topology.stmgrs": containers}) for plan in history]
    packing = algorithm.pack(history[0])
    for plan in history[1:]:
        before, packing = packing, algorithm.repack(packing, plan)
        gone = {i.task for i in before.instances} - {i.task for i in packing.instances}
        kept = [[i for i in c.instances if i.task not in gone] for c in before.containers]
        if not all(kept):
            continue  # an emptied container takes a share, which the sum below does not know
        needed = sum(
            fewest_moves([sum(i.component == c.name for i in instances) for instances in kept], c.tasks) for c in plan
        )
        assert len(moved(before, packing)) == needed
        if not gone:
            assert needed == 0


@fixed
@given(plan=plans.topologies(grouped=False), more=st.integers(1, 3))
def test_an_added_container_takes_its_share(algorithm, plan, more):
    containers = plan.config["topology.stmgrs"]
    wanted = min(containers + more, 6, sum(c.executors for c in plan))
    before = algorithm.pack(configured(plan, SLOTS))
    after = algorithm.repack(before, configured(plan, SLOTS | {"topology.stmgrs": wanted}))
    totals = {c.number: len(c.instances) for c in after.containers}
    assert all(totals[added] >= max(totals.values()) - 1 for added in range(containers + 1, wanted + 1))
    assert_even(after, [c.name for c in plan])


@fixed
def test_a_container_is_added_to_a_topology_of_single_tasks(algorithm):
    """No component alone is uneven then, and yet the new container must not stay empty."""
    singles = [component(name, 1) for name in "abcdef"]
    before = algorithm.pack(topology(*singles, stmgrs=2))
    after = algorithm.repack(before, topology(*singles, stmgrs=3))
    assert sizes(after) == [2, 2, 2]
    assert len(moved(before, after)) == 2
