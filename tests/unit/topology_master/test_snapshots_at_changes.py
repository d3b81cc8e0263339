"""The coordinator of snapshots when the plan changes, and when the topology ends."""

from __future__ import annotations

import pytest

from ardea.state.records import TimelineRecord
from ardea.topology_master.snapshots import Phase
from tests.unit.topology_master.coordinated import PLACES, Topology


@pytest.fixture
def running():
    topology = Topology()
    topology.begin()
    return topology


def by_another_plan(topology, places=None):
    between = topology.snapshots.between
    topology.snapshots.replanned(places or PLACES, between, topology.now)
    return between


def test_what_has_not_moved_is_settled_already(running):
    assert running.snapshots.settle(running.now)
    running.tick(100.0)
    assert running.order.begun == 0


def test_what_has_moved_is_settled_by_a_snapshot_at_once(running):
    running.snapshots.schedule.hold(quiet=True)
    running.report(moved=running.order.committed)
    assert not running.snapshots.settle(running.now)
    running.tick()
    assert running.order.begun > running.order.committed
    assert not running.snapshots.settle(running.now)
    running.take()
    assert running.snapshots.settle(running.now)


def test_while_spouts_are_held_no_other_snapshot_is_taken(running):
    running.snapshots.schedule.hold(quiet=True)
    running.report(moved=running.order.committed)
    running.tick(100.0)
    assert running.order.begun == 0
    running.snapshots.schedule.hold(quiet=False)
    running.tick()
    assert running.order.begun > 0


def test_one_that_was_asked_for_and_is_abandoned_comes_again_at_the_usual_pace(running):
    running.snapshots.schedule.hold(quiet=True)
    running.report(moved=running.order.committed)
    running.snapshots.settle(running.now)
    running.tick()
    first = running.order.begun
    running.report(1, gives_up=first)
    running.snapshots.settle(running.now)
    running.tick(9.9)
    assert running.order.begun == 0
    running.tick(0.1)
    assert running.order.begun > first


def test_what_the_next_update_asks_for_comes_at_once_although_the_last_one_was_refused(running):
    for _ in range(2):
        running.snapshots.schedule.hold(quiet=True)
        running.report(moved=running.order.committed)
        running.snapshots.settle(running.now)
        running.tick()
        assert running.order.begun > running.order.committed
        running.report(1, gives_up=running.order.begun)
        running.snapshots.schedule.hold(quiet=False)
        running.tick()


def test_nobody_takes_part_between_two_plans(running):
    committed = running.order.committed
    between = by_another_plan(running)
    assert between == TimelineRecord(timeline=2, restore=committed, committed=committed)
    assert (running.order.timeline, dict(running.order.lives)) == (2, {})
    running.tick(100.0)
    assert running.order.timeline == 2, "nobody has been heard of that works by the plan"
    running.report(timeline=1)
    running.tick()
    assert (running.order.timeline, running.order.restore) == (3, committed)
    assert dict(running.order.lives) == {1: 1, 2: 1, 3: 1}


def test_a_snapshot_under_way_ends_with_the_plan(running):
    running.report(moved=running.order.committed)
    running.tick(100.0)
    number = running.order.begun
    assert number
    by_another_plan(running)
    running.snapshots.stored(number, running.now)
    assert (running.order.begun, running.order.abandoned) == (0, number)
    assert running.snapshots.record.committed < number


def test_a_new_master_that_finds_nobody_in_the_timeline_waits_for_all(running):
    found = by_another_plan(running)
    other = Topology(term=2, record=found)
    other.tick()
    assert (other.order.timeline, other.snapshots.phase) == (2, Phase.BROKEN)
    other.report(timeline=1)
    other.tick()
    assert (other.order.timeline, other.order.restore) == (3, found.restore)


def test_other_tasks_and_containers_are_awaited_by_another_plan(running):
    by_another_plan(running, {1: 1, 2: 1, 4: 3})
    running.lives = dict.fromkeys((1, 2, 4), 1)
    running.report(1, 2, 4, timeline=1)
    running.tick()
    assert running.order.timeline == 2
    running.snapshots.manager_rose(3, 1, running.now)
    running.tick()
    assert dict(running.order.managers) == {1: 1, 3: 1}


def test_who_is_bound_is_known_from_the_last_report(running):
    running.report(1, bound=True)
    running.report(2)
    assert [running.snapshots.bound(task) for task in (1, 2, 9)] == [True, False, None]


# --- the end ----------------------------------------------------------------------------------------------------------


def test_the_end_is_a_snapshot_at_once_though_nothing_has_moved(running):
    running.snapshots.end(running.now)
    running.tick()
    number = running.order.begun
    assert number == running.order.final > running.order.committed
    running.take()
    assert (running.out.records[-1].final, running.order.final, running.order.committed) == (True, number, number)
    running.report(moved=number)
    running.tick(1000.0)
    assert running.order.begun == 0, "nothing comes after it"


def test_one_under_way_gives_way_to_the_last(running):
    running.report(moved=running.order.committed)
    running.tick(100.0)
    former = running.order.begun
    running.snapshots.end(running.now)
    running.tick()
    assert running.order.abandoned == former < running.order.begun == running.order.final


def test_a_last_snapshot_that_is_abandoned_comes_again(running):
    running.snapshots.end(running.now)
    running.tick()
    first = running.order.begun
    running.report(1, gives_up=first)
    assert (running.order.begun, running.order.final) == (0, 0)
    running.tick(10.0)
    assert running.order.begun == running.order.final > first


def test_who_rises_before_the_last_snapshot_counts_takes_the_end_back(running):
    committed = running.order.committed
    running.snapshots.end(running.now)
    running.tick()
    running.rise(1)
    assert running.out.events[-1] == "undeclared"
    running.tick()
    assert (running.order.restore, running.order.final, running.out.records[-1].final) == (committed, 0, False)


def test_who_rises_after_that_goes_back_to_the_end(running):
    running.snapshots.end(running.now)
    running.tick()
    running.take()
    number = running.order.committed
    running.rise(1)
    assert "undeclared" not in running.out.events
    running.tick()
    assert (running.order.restore, running.order.final, running.order.timeline) == (number, number, 2)
    assert running.out.records[-1].final


def test_a_new_master_goes_on_with_the_end(running):
    other = Topology(term=2, record=running.snapshots.record)
    other.snapshots.end(other.now)
    other.report()
    other.tick()
    assert other.order.begun == other.order.final > other.order.committed
