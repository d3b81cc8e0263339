"""What a bolt does with what comes, by the timeline in which it was sent, and whose credit is given back when."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.heron_instance import arrivals
from ardea.heron_instance.alignment import Aligned
from ardea.heron_instance.arrivals import Arrivals
from ardea.heron_instance.timeline import Timeline
from ardea.protocol.flow import Window
from ardea.protocol.wire_pb2 import BARRIER, ROWS, Header, SnapshotOrder

TASK, LIFE = 3, 1


class Task:
    """A bolt that reads tasks 1 and 2, and the credit that it gives back."""

    def __init__(self):
        self.timeline = Timeline(TASK, LIFE)
        self.credit = []
        output = SimpleNamespace(consumed=lambda header, size: self.credit.append((header.source, header.rows, size)))
        self.now, self.measured, self.given_up = 0.0, [], []
        self.snapshots = SimpleNamespace(
            timeline=self.timeline,
            aligned=lambda seconds, aside: self.measured.append((seconds, aside)),
            give_up=lambda number, why, too_much: self.given_up.append((number, why, too_much)),
        )
        self.window = Window(1 << 20, 0.5)
        self.env = SimpleNamespace(output=output, snapshots=self.snapshots, window=self.window, clock=lambda: self.now)
        self.arrivals = Arrivals(self.env, {1, 2})

    def works_in(self, timeline):
        self.timeline.ordered(SnapshotOrder(timeline=timeline, lives={TASK: LIFE}), timeline)
        self.timeline.restored()
        self.arrivals.go_on()

    def rows(self, source, rows, timeline):
        self.arrivals.put(Header(kind=ROWS, source=source, rows=rows, timeline=timeline), [b"x" * rows])

    def barrier(self, source, number, timeline):
        self.arrivals.put(Header(kind=BARRIER, source=source, snapshot=number, timeline=timeline), [])

    def everything(self):
        said = []
        while (thing := self.arrivals.next()) is not None:
            said.append(thing if isinstance(thing, Aligned) else (thing.header.rows, thing.counted))
        return said


@pytest.fixture
def task():
    return Task()


def test_rows_of_the_tasks_timeline_are_processed_and_pay_then(task):
    task.works_in(2)
    task.rows(1, 5, 2)
    assert (task.everything(), task.credit) == ([(5, False)], [])


def test_rows_of_a_former_timeline_are_void_and_their_credit_goes_back(task):
    task.works_in(2)
    task.rows(1, 5, 1)
    assert (task.everything(), task.credit) == ([], [(1, 5, 5)])


def test_rows_of_the_next_timeline_wait_within_their_credit(task):
    task.works_in(1)
    task.rows(1, 5, 2)
    assert (task.everything(), task.credit) == ([], [])
    task.works_in(2)
    assert (task.everything(), task.credit) == ([(5, False)], [])


def test_what_is_set_aside_pays_at_once_and_once(task):
    task.works_in(1)
    task.barrier(1, 9, 1)
    task.rows(1, 5, 1)
    assert (task.everything(), task.credit) == ([], [(1, 5, 5)])
    assert (task.window.aside_rows, task.window.aside_bytes) == (5, 5), "it still waits, for the watermark"
    task.now = 3.0
    task.barrier(2, 9, 1)
    assert task.everything() == [Aligned(9), (5, True)]
    assert task.credit == [(1, 5, 5)]
    assert (task.window.aside_rows, task.window.aside_bytes) == (0, 0)
    assert task.measured == [(3.0, 5)]


def test_who_has_too_much_set_aside_asks_to_abandon_and_goes_on_when_it_is(task, monkeypatch):
    monkeypatch.setattr(arrivals, "MOST_ASIDE", 7)
    task.works_in(1)
    task.barrier(1, 9, 1)
    task.rows(1, 5, 1)
    task.everything()
    task.arrivals.look(task.snapshots)
    assert task.given_up == []
    task.rows(1, 3, 1)
    task.everything()
    task.arrivals.look(task.snapshots)
    assert task.given_up == [(9, "8 bytes are set aside, and not all barriers have come", True)]
    task.timeline.ordered(SnapshotOrder(timeline=1, lives={TASK: LIFE}, abandoned=9), 2)
    task.arrivals.look(task.snapshots)
    assert task.everything() == [(5, True), (3, True)]


def test_the_next_timelines_executor_gets_what_came_ahead_of_it_and_all_else_is_paid_for(task):
    task.works_in(1)
    task.barrier(1, 9, 1)
    task.rows(1, 5, 1)
    assert task.everything() == []
    task.rows(2, 6, 1)
    task.rows(2, 7, 2)
    former, task.arrivals = task.arrivals, Arrivals(task.env, {1, 2})
    task.arrivals.take_over(former)
    assert task.credit == [(1, 5, 5), (2, 6, 6)]
    assert task.window.aside_rows == 0
    task.works_in(2)
    assert task.everything() == [(7, False)]
    assert len(task.credit) == 2


def test_without_snapshots_all_is_processed_as_it_comes(task):
    task.env.snapshots = None
    task.rows(1, 5, 0)
    task.rows(2, 6, 0)
    assert (task.everything(), task.credit) == ([(5, False), (6, False)], [])
