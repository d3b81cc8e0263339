"""The coordinator by itself: what it writes, what it orders and when.

Whether what it commits is right, whatever fails, is shown by tests/simulation/snapshots.
"""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import StateFile
from ardea.snapshots.manifest import Manifest
from ardea.state.records import TimelineRecord
from ardea.topology_master.snapshot_figures import Cause
from ardea.topology_master.snapshots import Phase
from tests.unit.topology_master.coordinated import Topology


@pytest.fixture
def topology():
    return Topology()


@pytest.fixture
def running(topology):
    topology.begin()
    return topology


def test_the_first_timeline_begins_once_all_are_there(topology):
    topology.report(1, 2, timeline=0)
    topology.tick()
    assert topology.out.records == []
    topology.report(3, timeline=0)
    topology.tick()
    assert topology.out.records == [TimelineRecord(timeline=1, tasks={1: 1, 2: 1, 3: 1}, managers={1: 1, 2: 1})]
    assert topology.out.events == ["record", "order"]


def test_the_first_snapshot_waits_until_all_have_their_state_and_comes_before_any_row(topology):
    topology.report(timeline=0)
    topology.tick()
    topology.report(1, 2)
    topology.tick()
    assert topology.order.begun == 0
    topology.report(3)
    topology.tick()
    assert (topology.order.begun, topology.order.committed) == ((1 << 32) + 1, 0)


def test_a_snapshot_counts_once_all_files_and_their_list_and_the_record_are_written(topology):
    topology.report(timeline=0)
    topology.tick()
    topology.report()
    topology.tick()
    number = topology.order.begun
    topology.report(1, 2, number=number, files=[StateFile(name="f")])
    assert topology.out.lists == []
    topology.report(3, number=number, files=[StateFile(name="f")])
    assert topology.out.lists == [(number, ["f", "f", "f"])]
    assert topology.snapshots.record.committed == 0
    topology.out.events.clear()
    topology.snapshots.stored(number, topology.now)
    assert topology.out.events == ["record", "committed", "order"]
    assert (topology.out.records[-1].committed, topology.order.committed, topology.order.begun) == (number, number, 0)


def test_the_next_one_waits_for_the_interval_and_for_something_to_have_happened(running):
    assert running.tick(30.0) == float("inf")
    assert running.order.begun == 0
    running.report(1, moved=running.order.committed)
    running.tick()
    assert running.order.begun == (1 << 32) + 2
    running.take()
    running.report(1, moved=running.order.committed)
    assert running.tick(4.0) == running.now + 6.0
    assert running.order.begun == 0
    running.tick(6.0)
    assert running.order.begun == (1 << 32) + 3


def test_a_slow_one_is_followed_by_a_pause(running):
    running.report(1, moved=running.order.committed)
    running.tick(10.0)
    running.now += 30.0
    running.take()
    running.report(1, moved=running.order.committed)
    assert running.tick() == running.now + 5.0


@pytest.mark.parametrize("why", ["time", "task", "list"])
def test_an_abandoned_one_is_said_and_taken_anew_and_rolls_nothing_back(running, why):
    committed = running.order.committed
    running.report(1, moved=committed)
    running.tick(10.0)
    number = running.order.begun
    if why == "time":
        assert running.tick() == running.now + 60.0
        running.tick(60.0)
    elif why == "task":
        running.report(2, gives_up=number, why="too much is set aside")
    else:
        running.report(number=number, files=[StateFile(name="f")])
        running.snapshots.stored(number, running.now, "the disk is full")
    assert (running.order.begun, running.order.abandoned, running.order.committed) == (0, number, committed)
    assert (running.out.figures.abandoned, running.timeline) == (1, 1)
    running.tick(10.0)
    assert running.order.begun == number + 1
    running.take()
    assert running.out.figures.abandoned == 0


def test_a_list_that_is_stored_too_late_says_nothing(running):
    running.report(1, moved=running.order.committed)
    running.tick(10.0)
    number = running.order.begun
    running.report(number=number, files=[StateFile(name="f")])
    running.tick(60.0)
    running.tick(10.0)
    assert running.order.begun == number + 1
    running.snapshots.stored(number, running.now)
    assert running.snapshots.record.committed < number


def test_a_rise_abandons_the_snapshot_and_goes_back_to_the_committed_one(running):
    committed = running.order.committed
    running.report(1, moved=committed)
    running.tick(10.0)
    running.rise(3)
    assert (running.snapshots.phase, running.order.begun) == (Phase.BROKEN, 0)
    running.tick()
    record = running.out.records[-1]
    assert (record.timeline, record.restore, record.committed, record.tasks[3]) == (2, committed, committed, 2)
    assert (running.order.timeline, running.order.restore, dict(running.order.lives)) == (2, committed, record.tasks)


def test_a_pod_that_dies_with_all_its_tasks_is_one_rollback(running):
    running.manager_dies(1)
    running.tick()
    assert running.timeline == 1, "its tasks have not been heard of"
    running.rise(1)
    running.tick()
    assert running.timeline == 1
    running.rise(2)
    running.tick()
    assert running.timeline == 2


def test_tasks_that_outlive_their_manager_keep_their_lives(running):
    running.manager_dies(2)
    running.report(3)
    running.tick()
    record = running.snapshots.record
    assert (running.timeline, record.tasks, record.managers) == (2, {1: 1, 2: 1, 3: 1}, {1: 1, 2: 2})


def test_what_is_reported_before_a_new_manager_has_registered_counts_for_nothing_but_the_lives(running):
    """Rows died with the former one, and the report may be of a barrier that came after them."""
    running.report(1, moved=running.order.committed)
    running.tick(10.0)
    number = running.order.begun
    running.report(1, 2, number=number, files=[StateFile(name="f")])
    running.snapshots.manager_met(2, running.now)
    running.report(3, number=number, files=[StateFile(name="f")])
    running.tick()
    assert (running.out.lists[-1][0] == number, running.timeline) == (False, 1)
    running.snapshots.manager_rose(2, 2, running.now)
    running.tick()
    assert running.timeline == 2


def test_a_new_master_waits_for_all_managers_before_a_snapshot_begins(running):
    taken = Topology(2, running.snapshots.record, managers=False)
    taken.report(moved=(1 << 32) + 1)
    taken.snapshots.manager_rose(1, 1, 0.0)
    taken.tick(20.0)
    assert (taken.snapshots.phase, taken.order.begun) == (Phase.RESTORING, 0)
    taken.snapshots.manager_rose(2, 1, 20.0)
    assert taken.snapshots.phase is Phase.RUNNING


def test_who_rises_while_state_is_put_back_begins_that_again(running):
    running.rise(3)
    running.tick()
    running.report(1, 2)
    running.rise(2)
    running.tick(0.5)
    assert running.timeline == 3
    running.report(1, 3)
    assert running.snapshots.phase is Phase.RESTORING
    running.report(2)
    assert running.snapshots.phase is Phase.RUNNING


def test_rollbacks_in_a_row_wait_longer_up_to_30_s_and_a_quiet_minute_forgets_them(running):
    for wait in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0):
        running.rise(3)
        due = running.tick()
        assert due == (float("inf") if wait == 0.0 else running.now + wait)
        running.tick(wait)
        running.report()
        assert running.snapshots.phase is Phase.RUNNING
    running.now += 60.0
    running.rise(3)
    running.tick()
    assert running.snapshots.phase is Phase.RESTORING


@pytest.mark.parametrize("lost", [False, True])
def test_a_task_may_end_its_timeline(running, lost):
    running.report(2, broken="ValueError: no", lost=lost)
    running.tick()
    assert running.timeline == 2
    assert running.out.figures.cause == "ValueError: no"
    assert running.out.figures.rollbacks[Cause.LOSS if lost else Cause.ERROR] == 1


def test_what_is_reported_of_a_former_timeline_or_life_says_nothing(running):
    running.rise(3)
    running.tick()
    running.report(1, timeline=1, broken="ValueError: no")
    running.report(1, 2)
    running.lives[3] = 1
    running.report(3)
    assert (running.snapshots.phase, running.timeline) == (Phase.RESTORING, 2)
    running.lives[3] = 2
    running.report(3)
    assert running.snapshots.phase is Phase.RUNNING


def test_a_new_master_goes_on_with_the_record_and_never_reuses_a_number(running):
    taken = Topology(2, running.snapshots.record)
    assert (taken.order.timeline, taken.order.committed) == (1, (1 << 32) + 1)
    assert taken.order.abandoned >= (1 << 32) + 99, "whatever a former master has begun"
    taken.report()
    assert (taken.snapshots.phase, taken.out.records) == (Phase.RUNNING, [])
    taken.report(1, moved=taken.order.committed)
    taken.tick(10.0)
    assert taken.order.begun == (2 << 32) + 1


def test_a_new_master_finds_out_who_has_risen_meanwhile(running):
    taken = Topology(2, running.snapshots.record)
    taken.lives[2] = 5
    taken.report()
    taken.tick()
    assert (taken.timeline, taken.snapshots.record.tasks[2]) == (2, 5)


def test_without_a_record_the_newest_snapshot_of_the_store_is_gone_on_from():
    """In a timeline far above the one that runs, whose number nobody has; numbers of snapshots go on above it, too."""
    topology = Topology(surveyed=False)
    number = 7 << 32 | 3
    topology.report(timeline=5)
    topology.tick()
    assert topology.out.records == []
    topology.snapshots.surveyed(Manifest(number=number, timeline=4, parts={}), topology.now)
    topology.tick(1.0)
    (record,) = topology.out.records
    assert (record.restore, record.committed) == (number, number)
    assert record.timeline > 1 << 32
    assert topology.order.abandoned == number
    topology.report()
    topology.report(moved=number)
    topology.tick(10.0)
    assert topology.order.begun == number + 1


@pytest.mark.parametrize("final", [False, True])
def test_without_a_record_the_list_says_whether_the_end_has_come(final):
    """What is stored of the topology's state may be older, or newer."""
    topology = Topology(surveyed=False)
    topology.snapshots.end(topology.now)
    topology.report(timeline=5)
    topology.snapshots.surveyed(Manifest(number=7, timeline=4, parts={}, final=final), topology.now)
    topology.tick(1.0)
    topology.report()
    topology.tick()
    assert ("undeclared" in topology.out.events) is not final
    assert (topology.order.final, topology.order.begun) == (7 * final, 0)


def test_where_neither_record_nor_store_has_what_tasks_work_in_the_topology_fails(topology):
    topology.report(1, timeline=5)
    ((_, reason, _),) = topology.out.events
    assert "lost" in reason
