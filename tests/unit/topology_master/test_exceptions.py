"""Exceptions of all tasks, as one list: who raised what how often, over lives, bounded."""

from __future__ import annotations

import random

from ardea.plan.physical import TaskPlan
from ardea.protocol.wire_pb2 import RaisedGroup
from ardea.topology_master.exceptions import LONGEST, MOST, Exceptions


class Hearing:
    """Unix seconds are a thousand more."""

    def __init__(self):
        self.exceptions, self.now = Exceptions(), 0.0

    def hears(self, task, life, digest, count, **whole):
        component, _, index = task.partition("-")
        place = TaskPlan(1 + int(index), component, int(index), 1)
        self.exceptions.reported(place, life, [RaisedGroup(digest=digest, count=count, **whole)], self.now)

    def says(self):
        return self.exceptions.present(self.now, self.now + 1000.0)


def test_one_group_of_all_tasks_of_a_component():
    it = Hearing()
    it.hears("count-0", 1, 7, 2, type="ValueError", message="bad", stack="...", row="(1,)")
    it.now = 5.0
    it.hears("count-1", 1, 7, 3)
    it.hears("add-0", 1, 7, 1, type="KeyError")
    add, count = it.says()
    assert (add.component, add.type, add.count) == ("add", "KeyError", 1)
    assert (count.count, count.tasks, count.first, count.last) == (5, {"count-0": 2, "count-1": 3}, 1000.0, 1005.0)
    assert (count.type, count.message, count.stack, count.row) == ("ValueError", "bad", "...", "(1,)")


def test_counts_of_lives_add_up_and_a_report_that_comes_again_counts_once():
    it = Hearing()
    for life, count in ((1, 2), (1, 2), (1, 5), (2, 1), (2, 3), (3, 4), (3, 4)):
        it.now += 1.0
        it.hears("count-0", life, 7, count)
    (group,) = it.says()
    assert (group.count, group.last) == (12, 1006.0)


def test_a_task_that_has_forgotten_the_group_counts_from_one():
    it = Hearing()
    for count in (5, 2):
        it.hears("count-0", 1, 7, count)
    assert it.says()[0].count == 7


def test_what_was_told_last_stays_until_it_is_told_again():
    it = Hearing()
    it.hears("count-0", 1, 7, 1, type="ValueError", message="one")
    it.hears("count-0", 1, 7, 2)
    assert it.says()[0].message == "one"
    it.hears("count-0", 1, 7, 3, type="ValueError", message="three")
    assert it.says()[0].message == "three"


def test_bounded_whatever_tasks_say():
    it, draw = Hearing(), random.Random(1)
    for _ in range(3000):
        it.now += 1.0
        text = "x" * draw.choice((1, 10 * LONGEST))
        it.hears(f"count-{draw.randrange(4)}", 1, draw.randrange(200), draw.randrange(100), type=text, stack=text)
        assert len(it.exceptions._groups) <= MOST
    said = it.says()
    assert len(said) == MOST
    assert [group.last for group in said] == sorted((group.last for group in said), reverse=True)
    assert max(len(group.stack) for group in said) == LONGEST
