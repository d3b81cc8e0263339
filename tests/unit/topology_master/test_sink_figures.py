"""How many intervals of sinks wait, and for how long the oldest has."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import SnapshotReport
from ardea.topology_master.sink_figures import REMEMBERED, SinkFigures

TASKS = {1: "words", 2: "out", 3: "out"}


def name(task):
    return f"{TASKS[task]}-{task}"


@pytest.fixture
def figures():
    figures = SinkFigures()
    for number, now in ((10, 100.0), (20, 110.0), (30, 120.0)):
        figures.committed(number, now)
    return figures


def report(unwritten=0, oldest=0, timeline=1, kept="", owes=False):
    return SnapshotReport(timeline=timeline, unwritten=unwritten, oldest=oldest, kept=kept, owes=owes)


def test_an_interval_is_as_old_as_the_commit_of_its_snapshot(figures):
    """Its number is the first that a snapshot of it could have had."""
    figures.heard(2, report(2, oldest=11, kept="cannot commit: no"))
    figures.committed(30, 125.0)  # again
    [sink] = figures.status(name, 130.0)
    assert (sink.task, sink.intervals, sink.seconds, sink.why) == ("out-2", 2, 20.0, "cannot commit: no")
    figures.heard(2, report(1, oldest=21))
    assert figures.status(name, 130.0)[0].seconds == 10.0
    figures.heard(2, report())
    assert figures.status(name, 130.0) == []


def test_what_a_former_master_has_committed_is_as_old_as_this_one(figures):
    figures.heard(2, report(1, oldest=3))
    assert figures.status(name, 130.0)[0].seconds == 30.0
    assert SinkFigures().status(name, 1.0) == []
    new = SinkFigures()
    new.heard(2, report(1, oldest=3))
    assert new.status(name, 130.0)[0].seconds == 0.0


def test_a_component_has_the_intervals_of_all_its_tasks_and_the_age_of_the_oldest(figures):
    figures.heard(2, report(1, oldest=21))
    figures.heard(3, report(4, oldest=1))
    assert figures.by_component(TASKS, 130.0) == {"out": (5, 30.0)}
    figures.replanned([1, 2])
    assert figures.by_component(TASKS, 130.0) == {"out": (1, 10.0)}


def test_a_sink_is_known_before_anything_has_waited(figures):
    assert figures.by_component(TASKS, 130.0) == {}
    figures.heard(1, report())
    figures.heard(2, report(owes=True))
    figures.heard(2, report())
    assert figures.by_component(TASKS, 130.0) == {"out": (0, 0.0)}
    figures.replanned([1, 3])
    assert figures.by_component(TASKS, 130.0) == {}


def test_while_a_task_has_no_state_what_it_said_before_holds(figures):
    figures.heard(2, report(1, oldest=1))
    figures.heard(2, report(timeline=0))
    assert figures.status(name, 130.0)[0].seconds == 30.0


@pytest.mark.parametrize(("interval", "late"), [(1.0, 10.1), (10.0, 30.1)])
def test_too_old_an_interval_is_a_trouble(figures, interval, late):
    figures.heard(2, report(2, oldest=21, kept="cannot commit: no"))
    assert list(figures.troubles(name, interval, 120.0 + late - 0.2, 1000.0)) == []
    [trouble] = figures.troubles(name, interval, 120.0 + late, 1000.0)
    assert (trouble.who, trouble.since) == ("out-2", pytest.approx(1000.0 - late))
    assert trouble.why.startswith("rows that count are not outside: 2 intervals wait, the oldest for ")
    assert trouble.why.endswith(" s: cannot commit: no")


def test_old_commits_are_forgotten(figures):
    for number in range(31, 31 + REMEMBERED):
        figures.committed(number, 1000.0 + number)
    figures.heard(2, report(1, oldest=11))
    assert figures.status(name, 2000.0)[0].seconds == 2000.0 - 1031.0
