"""What a task tells of its watermark: behind all that it has emitted, not too often, and again to who has not heard."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from ardea.heron_instance.watermarks import Telling
from ardea.protocol.wire_pb2 import WATERMARK

EVERY = 0.2


class Task:
    """``done``: what it has done, in order."""

    def __init__(self):
        self.done = []
        self.output = SimpleNamespace(held=False, put=self.put)
        self.plan = SimpleNamespace(epoch=4, readers=lambda _: (2, 3))
        self.task, self.timeline = SimpleNamespace(component="rows", task=1), 7

    def put(self, message):
        header = message.header
        assert (header.kind, header.source, header.epoch, header.timeline) == (WATERMARK, 1, 4, 7)
        self.done.append((header.watermark, header.idle, *header.targets))

    def send(self):
        self.done.append("rows")


@pytest.fixture
def task():
    return Task()


@pytest.fixture
def telling(task):
    return Telling(task, EVERY)


def test_it_is_told_behind_all_rows(task, telling):
    assert telling.tell(1.0, task, 5.0, idle=False) == math.inf
    assert task.done == ["rows", (5.0, False)]


def test_the_same_is_told_once_and_what_is_new_not_too_often(task, telling):
    telling.tell(1.0, task, 5.0, idle=False)
    assert telling.tell(1.1, task, 5.0, idle=False) == math.inf
    assert telling.tell(1.1, task, 6.0, idle=False) == 1.0 + EVERY
    assert telling.tell(1.1, task, 6.0, idle=True) == 1.0 + EVERY
    telling.tell(1.0 + EVERY, task, 7.0, idle=True)
    assert task.done == ["rows", (5.0, False), "rows", (7.0, True)]


def test_while_output_waits_for_credit_nothing_is_added(task, telling):
    task.output.held = True
    telling.tell(1.0, task, 5.0, idle=False)
    assert task.done == []
    task.output.held = False
    telling.tell(1.0, task, 5.0, idle=False)
    assert task.done[1:] == [(5.0, False)]


def test_who_has_not_heard_it_is_told_again_and_what_was_never_told_is_not(task, telling):
    telling.again([3])
    assert task.done == []
    telling.tell(1.0, task, 5.0, idle=False)
    telling.again([3])
    telling.again()
    assert task.done[1:] == [(5.0, False), (5.0, False, 3), (5.0, False)]


def test_a_task_that_nobody_reads_tells_nobody(task, telling):
    task.plan.readers = lambda _: ()
    telling.tell(1.0, task, 5.0, idle=False)
    assert (5.0, False) not in task.done
    assert telling.told == (5.0, False)
