"""What becomes of snapshots and timelines, in numbers and in words."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import SnapshotReport, StateFile
from ardea.topology_master.snapshot_figures import Cause, Reason
from tests.unit.topology_master.coordinated import PLACES, Topology


@pytest.fixture
def running():
    topology = Topology()
    topology.begin()
    topology.out.told.clear()
    return topology


def begin(topology):
    topology.report(1, moved=topology.order.committed)
    topology.tick(10.0)
    return topology.order.begun


def test_a_committed_snapshot_says_what_it_took_and_who_was_slowest(running):
    figures = running.out.figures
    former, number = running.order.committed, begin(running)
    old, new = (f"t1/1.{each & 0xFFFFFFFF}/3-1.base" for each in (former, number))
    files = [StateFile(name=old, bytes=1000), StateFile(name=new, bytes=10)]
    for task, after in ((3, 1.0), (1, 0.5), (2, 0.25)):
        running.now += after
        running.report(task, number=number, files=files, aligned=0.75 if task == 2 else 0.0)
    running.report(3, number=number, files=files)  # again: it is no slower for that
    running.now += 1.0
    running.snapshots.stored(number, running.now)
    last = figures.last
    assert (last.number, last.at, last.seconds) == (number, running.now, 2.75)
    assert (last.bytes, last.written, figures.written) == (3030, 30, 30)
    assert (last.slowest, last.slowest_seconds, last.aligned) == ("task 2", 1.75, 0.75)
    assert (figures.commits, figures.age(running.now + 4.0)) == (2, 4.0)
    assert figures.last_snapshot(number, running.now + 4.0).ago == 4.0


def test_the_first_commit_is_told_and_no_other_one():
    topology = Topology()
    topology.begin()
    assert topology.out.told == ["timeline 1 goes on from empty state", "the first snapshot, 1.1, counts"]
    begin(topology)
    topology.take()
    assert len(topology.out.told) == 2


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        (Reason.TIMEOUT, "after 60 s task 2, task 3 did not store it"),
        (Reason.STORE, "task 2: disk full"),
        (Reason.ASIDE, "task 2: too many bytes"),
        (Reason.ROLLBACK, "task 3 has a new life"),
        (Reason.END, "the last one follows"),
    ],
)
def test_an_abandoned_one_says_who_and_why(running, reason, says):
    number = begin(running)
    running.report(1, number=number, files=[StateFile(name="f")])
    if reason is Reason.TIMEOUT:
        running.tick(60.0)
    elif reason is Reason.STORE:
        running.report(2, gives_up=number, why="disk full")
    elif reason is Reason.ASIDE:
        running.report(2, gives_up=number, why="too many bytes", too_much=True)
    elif reason is Reason.ROLLBACK:
        running.rise(3)
    else:
        running.snapshots.end(running.now)
    figures = running.out.figures
    assert (figures.abandoned, dict(figures.abandonments), figures.why) == (1, {reason: 1}, says)
    assert f"snapshot 1.2 was abandoned: {says}" in running.out.told


def test_a_list_that_cannot_be_stored_says_so(running):
    number = begin(running)
    running.report(number=number, files=[StateFile(name="f")])
    running.snapshots.stored(number, running.now, "1.2.manifest cannot be stored: disk full")
    assert running.out.figures.why == "1.2.manifest cannot be stored: disk full"
    number = begin(running)
    running.report(number=number, files=[StateFile(name="f")])
    running.tick(60.0)
    assert running.out.figures.why == "after 60 s the list of its files was not stored"


def test_three_in_a_row_are_a_trouble_until_one_counts(running):
    figures = running.out.figures
    first = 0.0
    for count in range(3):
        assert list(figures.troubles(running.now, 0.0)) == []
        number = begin(running)
        running.report(2, gives_up=number, why="disk full")
        first = first if count else running.now
    assert running.out.told[-1] == (
        "3 snapshots in a row were abandoned, the last one because of task 2: disk full; "
        "task 1, task 3 had not stored it either"
    )
    (trouble,) = figures.troubles(running.now, 1000.0)
    assert (trouble.who, trouble.since) == ("snapshots", 1000.0 - (running.now - first))
    assert trouble.why == "3 in a row were abandoned, the last one because of task 2: disk full"
    begin(running)
    running.take()
    assert (figures.abandoned, figures.why, list(figures.troubles(running.now, 0.0))) == (0, "", [])
    assert running.out.told[-1] == "snapshot 1.5 counts, after 3 that were abandoned"


CAUSES = [
    (Cause.TASK, "task 3 has a new life"),
    (Cause.MANAGER, "the stream manager of container 2 has a new life"),
    (Cause.ERROR, "count-0 raised ValueError"),
    (Cause.LOSS, "count-0 cannot read rows"),
    (Cause.UPDATE, "an update"),
]


@pytest.mark.parametrize(("cause", "says"), CAUSES)
def test_a_rollback_says_its_cause_and_how_long_it_took(running, cause, says):
    if cause is Cause.TASK:
        running.rise(3)
    elif cause is Cause.MANAGER:
        running.manager_dies(2)
        running.rise(3)
    elif cause in (Cause.ERROR, Cause.LOSS):
        running.report(3, broken=says, lost=cause is Cause.LOSS)
    else:
        running.snapshots.replanned(PLACES, running.snapshots.between, running.now)
    figures = running.out.figures
    assert (dict(figures.rollbacks), figures.cause) == ({cause: 1}, says)
    running.report(timeline=0)
    assert figures.down_by(running.now + 1.0) == 1.0
    running.now += 2.0
    running.tick()
    running.report()
    assert (figures.rollback.restored, figures.down, figures.down_by(running.now + 9.0)) == (2.0, 2.0, 2.0)
    assert figures.rollback.bytes == figures.last.bytes
    timeline = 3 if cause is Cause.UPDATE else 2
    assert running.out.told == [
        f"rolls back: {says}",
        f"timeline {timeline} goes on from snapshot 1.1, 2.00 s after the break",
    ]


def test_a_rise_while_state_is_put_back_makes_one_break_of_both(running):
    running.rise(3)
    running.tick(1.0)
    running.rise(2)
    running.tick(1.0)
    running.report()
    figures = running.out.figures
    assert (figures.rollbacks[Cause.TASK], figures.rollback.restored, figures.down) == (2, 2.0, 2.0)


def test_who_is_awaited_is_named_with_what_it_says(running):
    figures, snapshots = running.out.figures, running.snapshots
    assert list(figures.waits(snapshots.late)) == []
    running.rise(3)
    running.tick()
    running.report(1)
    figures.heard(3, SnapshotReport(waits="cannot read its state: no answer"))
    assert snapshots.late == [2, 3]
    assert list(figures.waits(snapshots.late)) == ["task 3 cannot read its state: no answer", "for task 2"]
    assert [(each.who, each.why) for each in figures.troubles(0.0, 0.0)] == [
        ("task 3", "cannot read its state: no answer")
    ]
    figures.heard(3, SnapshotReport())
    assert list(figures.waits(snapshots.late)) == ["for task 2, task 3"]
    running.report(2, 3)
    assert snapshots.late == []
    number = begin(running)
    running.report(1, number=number, files=[StateFile(name="f")])
    assert snapshots.late == [2, 3]


def test_who_has_no_life_is_awaited_by_a_rollback(running):
    running.manager_dies(1)
    assert running.snapshots.late == [1, 2]


def test_of_what_a_former_master_committed_the_number_is_known(running):
    taken = Topology(2, running.snapshots.record)
    last = taken.out.figures.last_snapshot(taken.snapshots.record.committed, 0.0)
    assert (last.number, last.ago, last.bytes) == ("1.1", None, None)
    assert (taken.out.figures.age(5.0), taken.out.figures.age(8.0)) == (0.0, 3.0)
