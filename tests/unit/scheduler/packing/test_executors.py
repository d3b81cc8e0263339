"""Executors and Storm's scheduling tables, as pure functions."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.scheduler.packing.even import Slot, assign, sort_slots
from ardea.scheduler.packing.executors import describe_tasks, executors_of, partition_fixed
from tests.unit.scheduler.packing.plans import component, topology


@pytest.mark.parametrize(
    ("chunks", "tasks", "expected"),
    [
        (5, 9, [[1, 2], [3, 4], [5, 6], [7, 8], [9]]),
        (3, 10, [[1, 2, 3, 4], [5, 6, 7], [8, 9, 10]]),
        (2, 6, [[1, 2, 3], [4, 5, 6]]),
        (3, 5, [[1, 2], [3, 4], [5]]),
        (8, 2, [[1], [2]]),
        (3, 0, []),
        (0, 3, []),
    ],
)
def test_partition_fixed_is_storms(chunks, tasks, expected):
    assert [list(run) for run in partition_fixed(chunks, range(1, tasks + 1))] == expected


@given(st.integers(1, 50), st.integers(1, 200))
def test_runs_are_neighbours_and_the_bigger_come_first(chunks, tasks):
    runs = partition_fixed(chunks, range(tasks))
    assert [task for run in runs for task in run] == list(range(tasks))
    lengths = [len(run) for run in runs]
    assert len(runs) == min(chunks, tasks)
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] - lengths[-1] <= 1


def test_executors_follow_the_task_ids_of_the_plan():
    plan = topology(component("b", 2, 4), component("a", 3, 5))
    assert [e.name for e in executors_of(plan)] == ["a[1-2]", "a[3-4]", "a[5]", "b[6-7]", "b[8-9]"]
    assert [(i.index, i.executor, i.task) for i in executors_of(plan)[4].instances()] == [(2, 1, 8), (3, 1, 9)]


@pytest.mark.parametrize(("tasks", "text"), [((3, 4), "[3-4]"), ((7,), "[7]"), ((3, 17), "[3,17]")])
def test_tasks_are_named_as_a_range_only_where_they_are_one(tasks, text):
    assert describe_tasks(tasks) == text


def slots(**nodes: int) -> list[Slot]:
    return [Slot(node, 6700 + offset) for node, free in nodes.items() for offset in range(free)]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"s1": 2, "s2": 3}, "s2:6700 s1:6700 s2:6701 s1:6701 s2:6702"),
        (
            {"s1": 2, "s2": 3, "s3": 4},
            "s3:6700 s2:6700 s1:6700 s3:6701 s2:6701 s1:6701 s3:6702 s2:6702 s3:6703",
        ),
    ],
)
def test_sort_slots_is_storms(nodes, expected):
    assert " ".join(f"{s.node}:{s.port}" for s in sort_slots(slots(**nodes))) == expected


@pytest.mark.parametrize(
    ("executors", "workers", "expected"),
    [(6, 3, [2, 2, 2]), (6, 6, [1] * 6), (1, 6, [1]), (8, 4, [2, 2, 2, 2])],
)
def test_rebalancing_twelve_tasks_deals_them_as_storm_does(executors, workers, expected):
    dealt = assign(partition_fixed(executors, range(1, 13)), workers, slots(a=4, b=4))
    assert [len(share) for share in dealt.values()] == expected


def test_eight_executors_of_twelve_tasks_have_storms_sizes():
    assert [len(run) for run in partition_fixed(8, range(12))] == [2, 2, 2, 2, 1, 1, 1, 1]


def test_more_executors_than_slots_fill_the_workers_that_were_asked_for():
    """Storm's testOverParallelismAssignment: 21, 9, 2 and 10 tasks, seven workers, two nodes of five slots."""
    plan = topology(component("1", 21), component("2", 9), component("3", 2), component("4", 10))
    dealt = assign(executors_of(plan), 7, slots(a=5, b=5))
    assert " ".join(f"{s.node}:{s.port}" for s in dealt) == "a:6700 b:6700 a:6701 b:6701 a:6702 b:6702 a:6703"
    assert [len(share) for share in dealt.values()] == [6] * 7
    placed = Counter(executor.component for share in dealt.values() for executor in share)
    assert placed == {"1": 21, "2": 9, "3": 2, "4": 10}
    assert sorted(task for share in dealt.values() for executor in share for task in executor.tasks) == list(
        range(1, 43)
    )
    assert all([e.component for e in share].count("1") == 3 for share in dealt.values())


def test_fewer_free_slots_than_workers_squeeze_the_executors():
    assert assign(range(9), 4, slots(a=1)) == {Slot("a", 6700): list(range(9))}


@given(st.integers(1, 40), st.integers(1, 10), st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), min_size=1))
def test_neighbouring_executors_differ_by_at_most_one_between_slots_and_between_equal_nodes(executors, workers, nodes):
    dealt = assign(range(executors), workers, slots(**nodes))
    used = min(workers, sum(nodes.values()))
    assert sorted(e for share in dealt.values() for e in share) == list(range(executors))
    for first in range(executors):
        for last in range(first + 1, executors + 1):
            counts = [sum(first <= e < last for e in share) for share in dealt.values()] + [0] * (used - len(dealt))
            assert max(counts) - min(counts) <= 1
    if len(set(nodes.values())) == 1 and used % len(nodes) == 0:
        by_node = [sum(len(share) for slot, share in dealt.items() if slot.node == node) for node in nodes]
        assert max(by_node) - min(by_node) <= used // len(nodes)
        if executors >= used and executors % used == 0:
            assert len(set(by_node)) == 1
