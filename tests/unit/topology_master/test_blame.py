"""Who is blamed for the end of timelines, what is counted of it, and when the topology cannot go on."""

from __future__ import annotations

import msgspec
import pytest

from ardea.state import records
from ardea.state.records import BlamedRow, BlameFacts, TimelineRecord
from ardea.topology_master.blame import MOST_ROWS, Accused, Blame
from tests.unit.topology_master.coordinated import Topology

TASKS = {1: Accused("count-0", "count"), 2: Accused("count-1", "count"), 3: Accused("words-0", "words")}
WIDE = {1: Accused("count-0", "count", ways=5)}
WHY = "count-0 raised ValueError: no at words.py:12"


def ended(blame, *raised, alone=()):
    """A timeline in which these tasks have raised at these rows."""
    for task, row in raised:
        blame.raised(task, row, WHY)
    blame.ended(alone)
    return {(each.component, each.row): each.times for each in blame.facts.rows}


def test_a_row_is_counted_by_its_bolt_and_handed_out():
    blame = Blame(TASKS, 3)
    assert ended(blame, (1, 7)) == {("count", 7): 1}
    assert ended(blame, (1, 7), (2, 8)) == {("count", 7): 2, ("count", 8): 1}
    assert [(each.component, each.row, each.times) for each in blame.said] == [("count", 7, 2), ("count", 8, 1)]
    assert blame.stories[0][0] == "count-0"
    assert "for this row 2 of 3 times" in blame.stories[0][1]
    assert not blame.progress
    ended(blame, (1, 7))
    assert blame.progress
    assert "the row is skipped from now on: it goes to __dead_letter of count" in blame.stories[0][1]


def test_what_a_task_repeats_is_counted_once_in_a_timeline():
    blame = Blame(TASKS, 3)
    blame.raised(1, 7, WHY)
    assert ended(blame, (1, 7)) == {("count", 7): 1}
    assert ended(blame) == {("count", 7): 1}


def test_a_commit_forgets_all():
    blame = Blame(TASKS, 3)
    ended(blame, (1, 7), (3, 0), alone=[2])
    blame.committed()
    assert (blame.facts, blame.said) == (BlameFacts(), [])


def test_errors_without_a_row_fail_the_topology_after_three_rollbacks():
    blame = Blame(TASKS, 3)
    for _ in range(3):
        ended(blame, (3, 0))
        assert blame.failure is None
    ended(blame, (3, 0))
    what = "words has ended 4 timelines without a snapshot that counts in between, and no single row can be blamed"
    assert blame.failure == (f"{what}; the last error: {WHY}", "words-0")


def test_two_tasks_that_raise_in_one_timeline_are_one_strike():
    blame = Blame(TASKS, 3)
    for _ in range(3):
        ended(blame, (1, 0), (2, 0))
    assert blame.failure is None


@pytest.mark.parametrize(("tasks", "allowed"), [(TASKS, 3), (WIDE, 5)])
def test_rows_that_differ_at_each_replay_fail_it_too(tasks, allowed):
    blame = Blame(tasks, 3)
    for row in range(1, allowed + 1):
        ended(blame, (1, row))
        assert blame.failure is None
    ended(blame, (1, 99))
    assert "each time with another row" in blame.failure[0]


def test_many_rows_that_come_again_do_not():
    blame = Blame(TASKS, 3)
    for row in range(1, 60):
        for _ in range(3):
            ended(blame, (1, row))
            assert blame.failure is None
    assert {each.times for each in blame.facts.rows} == {3}


def test_deaths_never_fail_it_and_note_each_tuple_of_the_component():
    blame = Blame(TASKS, 3)
    for times in range(1, 9):
        blame.ended([1])
        assert [(each.component, each.row, each.times) for each in blame.said] == [("count", 0, times)]
    for row in range(1, 9):
        blame.died(1, row, row)
        assert ended(blame)["count", row] == 1
    assert blame.failure is None


def test_a_row_that_kills_is_counted_as_one_that_raises():
    blame = Blame(TASKS, 3)
    for life in (2, 3):
        blame.died(1, life, 7)
        blame.died(1, life, 7)
        blame.ended([1])
    assert ended(blame, (1, 7)) == {("count", 7): 3}


def test_of_many_rows_those_that_will_be_skipped_stay_and_the_record_stays_small():
    long = {1: Accused("count-0", "c" * 200, ways=16)}
    blame = Blame(long, 3)
    for row in range(1, 11):
        for _ in range(3):
            ended(blame, (1, (1 << 64) - row))
    for row in range(1, 500):
        blame.raised(1, row, WHY)
        blame.ended([])
    assert len(blame.facts.rows) == MOST_ROWS
    assert sum(each.times == 3 for each in blame.facts.rows) == 10
    assert len(records.encode(TimelineRecord(blame=blame.facts))) < 20_000


def test_more_rows_than_can_be_skipped_fail_it():
    blame = Blame(TASKS, 3)
    for row in range(1, MOST_ROWS + 2):
        for _ in range(3):
            ended(blame, (1, row))
    reason, culprit = blame.failure
    assert reason.startswith("more than 64 rows between two snapshots have each ended 3 timelines")
    assert culprit == "count-0"


def test_a_record_of_a_version_that_blames_nobody_can_be_read():
    data = records.encode(TimelineRecord(timeline=4))
    _, _, without = data.partition(b',"blame"')
    older = data.replace(b',"blame"' + without.rpartition(b"}}")[0], b"")
    assert b"blame" not in older
    msgspec.json.decode(older)
    assert records.decode(older, TimelineRecord, "/here") == TimelineRecord(timeline=4)
    kept = TimelineRecord(blame=BlameFacts((BlamedRow("count", (1 << 64) - 1, 2),), {"words": 1}, {"count": 2}))
    assert records.decode(records.encode(kept), TimelineRecord, "/here") == kept


# --- with the coordinator -------------------------------------------------------------------------------------


@pytest.fixture
def running():
    topology = Topology()
    topology.begin()
    return topology


def raises(topology, task=2, row=7):
    topology.report(task, broken=WHY, blamed=row)
    topology.tick(60.0)


def test_counts_are_in_the_record_and_in_the_order_and_a_new_master_goes_on_with_them(running):
    raises(running)
    assert running.out.records[-1].blame.rows == (BlamedRow("count", 7, 1),)
    assert [(each.row, each.times) for each in running.order.blamed] == [(7, 1)]
    taken = Topology(2, running.snapshots.record)
    assert [(each.row, each.times) for each in taken.order.blamed] == [(7, 1)]
    taken.report()
    raises(taken)
    assert taken.snapshots.record.blame.rows == (BlamedRow("count", 7, 2),)


def test_who_raises_in_a_timeline_that_is_over_already_is_counted_as_well(running):
    running.report(2, broken=WHY, blamed=7)
    running.report(3, broken=WHY, blamed=8)
    running.tick()
    assert {each.row for each in running.snapshots.record.blame.rows} == {7, 8}


def test_what_is_repeated_to_a_new_master_after_the_record_was_written_is_not_counted_again(running):
    raises(running)
    taken = Topology(2, running.snapshots.record)
    taken.report(2, timeline=1, broken=WHY, blamed=7)
    taken.tick(60.0)
    assert taken.snapshots.record.blame.rows == (BlamedRow("count", 7, 1),)


def test_what_a_new_life_says_of_the_one_before_is_counted_once(running):
    running.lives[2] = 2
    running.report(2, timeline=0, died_on=7)
    running.report(2, timeline=0, died_on=7)
    running.tick(60.0)
    assert running.snapshots.record.blame.rows == (BlamedRow("count", 7, 1),)
    running.report(2, timeline=0, died_on=7)
    running.rise(3)
    running.tick(60.0)
    assert running.snapshots.record.blame.rows == (BlamedRow("count", 7, 1),)
    assert running.snapshots.record.blame.deaths == {"count": 2}


def test_a_task_that_dies_with_its_container_is_not_blamed(running):
    running.manager_dies(2)
    running.rise(3)
    running.tick(60.0)
    assert (running.timeline, running.snapshots.record.blame) == (2, BlameFacts())


def test_a_commit_takes_it_out_of_record_and_order(running):
    raises(running)
    running.report()
    running.report(1, moved=running.order.committed)
    running.tick(60.0)
    running.take()
    assert (running.snapshots.record.blame, len(running.order.blamed)) == (BlameFacts(), 0)


def test_a_topology_that_cannot_go_on_begins_no_timeline(running):
    for _ in range(4):
        raises(running, 1, 0)
        running.report()
    assert running.timeline == 4
    (failure,) = [each for each in running.out.events if each[0] == "unusable"]
    assert failure[2] == "words-0"


def test_after_a_row_that_will_be_skipped_the_next_rollback_does_not_wait(running):
    for wait in (0.0, 0.5, 1.0, 0.0):
        running.report()
        running.report(2, broken=WHY, blamed=7)
        timeline = running.timeline
        running.tick(wait)
        assert running.timeline == timeline + 1
