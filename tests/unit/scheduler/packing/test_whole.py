"""Repacking where containers are replaced as a whole: nobody who goes on gets company."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import TopologyError
from ardea.scheduler.packing.whole import repack_whole
from tests.unit.scheduler.packing import plans
from tests.unit.scheduler.packing.plans import (
    ALL,
    assert_sound,
    assert_within_limits,
    component,
    configured,
    moved,
    names,
    placed,
    topology,
)


def test_new_tasks_get_a_container_of_their_own_and_give_it_up_again():
    before = placed(topology(component("a", 2), component("b", 2)), "a-0 b-0", "a-1 b-1")
    more = repack_whole(before, topology(component("a", 4), component("b", 2), stmgrs=2))
    assert names(more) == {1: "a-0 b-0", 2: "a-1 b-1", 3: "a-2 a-3"}
    assert more.containers[:2] == repack_whole(before, topology(component("a", 2), component("b", 2))).containers
    assert names(repack_whole(more, topology(component("a", 2), component("b", 2)))) == names(before)


def test_a_new_container_is_no_larger_than_the_largest():
    before = placed(topology(component("a", 3)), "a-0 a-1", "a-2")
    after = repack_whole(before, topology(component("a", 8)))
    assert [len(container.instances) for container in after.containers] == [2, 1, 2, 2, 1]


def test_a_task_that_fits_nowhere_is_refused():
    before = placed(topology(component("a", 1)), "a-0")
    with pytest.raises(TopologyError, match="fits into no container"):
        repack_whole(before, topology(component("a", 2), config={"topology.container.max.ram.hint": 1 << 20}))


CHANGES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 12), min_size=1)


@pytest.mark.parametrize("algorithm", ALL, ids=lambda a: a.name)
@given(plan=plans.topologies(), changes=st.lists(CHANGES, min_size=1, max_size=4), limits=plans.limits())
def test_whatever_becomes_of_a_topology_a_container_only_loses_tasks(algorithm, plan, changes, limits):
    plan = configured(plan, {"supervisor.slots.ports": 6, **limits})
    try:
        packing = algorithm.pack(plan)
    except TopologyError:
        return  # not in so few containers
    highest = max(i.task for i in packing.instances)
    for change in changes:
        plan = plan.scaled({c.name: (change[c.name],) * 2 for c in plan if c.name in change})
        before, packing = packing, repack_whole(packing, plan, highest=highest)
        assert_sound(packing, plan)
        assert_within_limits(packing, plan)
        assert moved(before, packing) == set()
        former = {c.number: {i.task for i in c.instances} for c in before.containers}
        for container in packing.containers:
            tasks = {i.task for i in container.instances}
            assert tasks <= former.get(container.number, set()) or min(tasks) > highest
        highest = max(highest, *(i.task for i in packing.instances))
