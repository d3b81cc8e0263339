"""A record that a master has found, and what the store and the tasks say to it."""

from __future__ import annotations

import pytest

from ardea.snapshots.manifest import Manifest
from ardea.state.records import BlameFacts, TimelineRecord
from ardea.topology_master.forgotten import LOST
from ardea.topology_master.recorded import A_LEAP, Doubts

RECORD = TimelineRecord(timeline=5, restore=3, committed=7, tasks={1: 1}, blame=BlameFacts(strikes={"count": 1}))


def listed(number, timeline, *, final=False):
    return Manifest(number=number, timeline=timeline, parts={}, final=final)


@pytest.mark.parametrize("newest", [None, listed(6, 5), listed(7, 5), listed(7, 9)])
def test_where_the_store_has_nothing_newer_the_record_holds(newest):
    assert Doubts().answered(RECORD, newest, "") is RECORD


@pytest.mark.parametrize("final", [False, True])
def test_a_newer_list_of_the_timeline_counts_in_it(final):
    found = Doubts().answered(RECORD, listed(8, 5, final=final), "")
    assert found == TimelineRecord(timeline=5, restore=3, committed=8, tasks={1: 1}, final=final)


@pytest.mark.parametrize("timeline", [4, 6])
def test_after_a_newer_list_of_another_timeline_one_begins_that_is_above_all(timeline):
    found = Doubts().answered(RECORD, listed(8, timeline), "")
    assert (found.restore, found.committed, found.tasks) == (8, 8, {})
    assert found.timeline == max(timeline, 5) + A_LEAP


def test_a_task_that_works_in_a_later_timeline_contradicts_as_soon_as_the_store_has_answered():
    doubts = Doubts()
    doubts.heard = 9
    assert doubts.contradicted(RECORD) is None
    record = doubts.answered(RECORD, listed(7, 5), "")
    assert doubts.contradicted(record) == TimelineRecord(timeline=9, restore=7, committed=7)
    doubts.heard = 5
    assert doubts.contradicted(record) is None


@pytest.mark.parametrize(
    ("record", "error", "why"),
    [
        (TimelineRecord(), "", f"{LOST} of snapshots, and the store has none either"),
        (TimelineRecord(timeline=3), "", f"{LOST} of snapshots, and the store has none either"),
        (TimelineRecord(restore=1, committed=1), "", f"{LOST} of snapshots, and the store has none either"),
        (RECORD, "2.5.manifest is cut", "2.5.manifest is cut"),
    ],
)
def test_without_a_snapshot_that_is_known_to_be_the_newest_nobody_goes_on(record, error, why):
    doubts = Doubts()
    doubts.heard = 9
    assert doubts.contradicted(doubts.answered(record, None, error)) == why
