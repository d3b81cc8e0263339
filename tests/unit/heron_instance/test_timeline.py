"""What a task makes of the master's order: the newest counts, and a life that is not in it takes no part."""

from __future__ import annotations

import pytest

from ardea.heron_instance.timeline import Fate, Timeline
from ardea.protocol.wire_pb2 import SnapshotOrder


def order(timeline=1, *, life=7, **more):
    return SnapshotOrder(timeline=timeline, lives={3: life}, **more)


@pytest.fixture
def task():
    return Timeline(3, 7)


def test_it_begins_with_nothing_and_waits(task):
    assert (task.works, task.emits, task.rolls_back) == (False, False, False)
    assert task.fate(1) is Fate.WAITS


def test_it_works_once_its_state_is_back(task):
    assert task.ordered(order(2, restore=9, committed=9), 1)
    assert (task.rolls_back, task.snapshot, task.works) == (True, 9, False)
    assert (task.fate(1), task.fate(2), task.fate(3)) == (Fate.VOID, Fate.WAITS, Fate.WAITS)
    task.restored()
    assert (task.rolls_back, task.works, task.emits, task.number) == (False, True, True, 2)
    assert (task.fate(1), task.fate(2), task.fate(3)) == (Fate.VOID, Fate.TAKEN, Fate.WAITS)


def test_a_spout_emits_once_there_is_a_snapshot_to_go_back_to(task):
    task.ordered(order(begun=5), 1)
    task.restored()
    assert (task.emits, task.begun) == (False, 5)
    task.took(5)
    assert task.begun == 0
    task.ordered(order(committed=5), 2)
    assert (task.emits, task.committed) == (True, 5)


def test_a_life_that_is_not_in_the_timeline_takes_no_part(task):
    task.ordered(order(life=8, begun=5, committed=4), 1)
    assert (task.rolls_back, task.works, task.begun, task.committed) == (False, False, 0, 0)
    assert task.fate(1) is Fate.WAITS


def test_a_life_that_was_replaced_stops(task):
    task.ordered(order(committed=4), 1)
    task.restored()
    task.ordered(order(2, life=8, committed=4), 2)
    assert (task.works, task.rolls_back) == (False, False)
    assert (task.fate(1), task.fate(2)) == (Fate.VOID, Fate.WAITS)


def test_an_order_that_was_overtaken_says_nothing(task):
    assert task.ordered(order(committed=4), 2)
    assert not task.ordered(order(begun=5), 1)
    assert not task.ordered(order(begun=5), 2)
    task.restored()
    assert (task.begun, task.committed) == (0, 4)


def test_an_error_ends_its_part_until_the_next_timeline(task):
    task.ordered(order(begun=5), 1)
    task.restored()
    task.ended()
    assert (task.works, task.begun, task.fate(1)) == (False, 0, Fate.WAITS)
    task.ordered(order(2), 2)
    task.restored()
    assert task.works


def test_what_was_committed_in_another_timeline_is_not_said_before_the_state_is_back(task):
    task.ordered(order(committed=4), 1)
    task.restored()
    task.ordered(order(2, restore=9, committed=9), 2)
    assert task.committed == 0
    task.restored()
    assert task.committed == 9
