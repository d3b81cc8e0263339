"""Markers travel once over each link, and stay where they were said among the rows of each task."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import BARRIER, MARKER, ROWS, WATERMARK, Header
from tests.unit.stream_manager.mesh import Mesh


class Marked(Mesh):
    """All tasks are there, and nothing has been said since."""

    def __init__(self, containers=3, bolts=2):
        super().__init__(containers, bolts)
        self.begins(*self.plan.tasks)
        self.second()
        self.said.clear()
        self.spout = self.tasks(1, "rows")[0]
        self.readers = self.plan.readers("rows")

    def marks(self, round_, targets=(), *, end=False, epoch=1):
        header = Header(kind=MARKER, source=self.spout, round=round_, targets=targets, end=end, epoch=epoch)
        self.from_task(self.spout, header, lane=Lane.DATA)
        self.flush()

    def between(self):
        """Markers that a manager has sent another, by container: the tasks that each names."""
        return [
            (int(to.split()[1]), list(header.targets))
            for _, to, header, _ in self.said
            if header.kind == MARKER and to.startswith("manager")
        ]

    def got(self, task):
        """What the task was sent: rounds of markers, and rows by their size, negative."""
        said = [header for _, to, header, _ in self.said if to == f"task {task}" and header.kind in (ROWS, MARKER)]
        return [header.round if header.kind == MARKER else -header.rows for header in said]


@pytest.fixture
def mesh():
    return Marked()


def test_a_marker_travels_once_over_each_link_and_reaches_every_reader(mesh):
    mesh.marks(7)
    assert mesh.between() == [(n, mesh.tasks(n, "keep")) for n in (2, 3)]
    assert {task: mesh.got(task) for task in mesh.readers} == {task: [7] for task in mesh.readers}


def test_one_that_is_for_some_tasks_reaches_these(mesh):
    here, there = mesh.tasks(1, "keep")[0], mesh.tasks(2, "keep")[1]
    mesh.marks(7, [here, there])
    assert mesh.between() == [(2, [there])]
    assert [task for task in mesh.readers if mesh.got(task)] == [here, there]


def test_what_a_marker_says_arrives(mesh):
    mesh.marks(7, end=True)
    (task,) = mesh.tasks(3, "keep")[:1]
    (header,) = (header for _, to, header, _ in mesh.said if to == f"task {task}" and header.kind == MARKER)
    life = mesh.managers[1].members.lives[mesh.spout]
    assert (header.source, header.source_life, header.target, header.end) == (mesh.spout, life, task, True)
    assert not header.targets
    assert not header.target_lives


def test_a_barrier_travels_as_a_marker_does(mesh):
    """After the rows of each task, with its number and its timeline."""
    slow = mesh.tasks(2, "keep")[0]
    mesh.emits(mesh.spout, slow, 16)
    mesh.emits(mesh.spout, slow, 5)
    header = Header(kind=BARRIER, source=mesh.spout, snapshot=9, timeline=4, epoch=1)
    mesh.from_task(mesh.spout, header, lane=Lane.DATA)
    mesh.flush()

    def barriers():
        said = [(to, h.snapshot, h.timeline) for _, to, h, _ in mesh.said if h.kind == BARRIER]
        return {to: (number, timeline) for to, number, timeline in said if to.startswith("task")}, len(said)

    others = {f"task {task}" for task in mesh.readers if task != slow}
    assert barriers() == (dict.fromkeys(others, (9, 4)), len(others) + 2)
    mesh.consumes(slow, 1, 16)
    mesh.flush()
    assert barriers()[0][f"task {slow}"] == (9, 4)


def test_where_rows_wait_the_marker_waits_after_them(mesh):
    """And only there."""
    slow, quick = mesh.tasks(2, "keep")
    mesh.emits(mesh.spout, slow, 16)
    mesh.emits(mesh.spout, slow, 5)
    mesh.marks(7)
    assert (mesh.got(slow), mesh.got(quick)) == ([-16], [7])
    credit = mesh.managers[1].outputs.output_credits[mesh.spout]
    assert credit.held == 5 + 1
    assert sorted(mesh.between()) == [(2, [quick]), (3, mesh.tasks(3, "keep"))]
    mesh.consumes(slow, 1, 16)
    mesh.flush()
    assert mesh.got(slow) == [-16, -5, 7]
    assert mesh.between()[2:] == [(2, [slow])]
    assert credit.held == 0


def watermarks(mesh, task):
    """What the task was sent: watermarks, and rows by their size, negative."""
    said = [header for _, to, header, _ in mesh.said if to == f"task {task}" and header.kind in (ROWS, WATERMARK)]
    return [header.watermark if header.kind == WATERMARK else -header.rows for header in said]


def test_a_watermark_travels_as_a_marker_does_and_a_newer_one_takes_the_place_of_one_that_waits(mesh):
    """No rows wait between them; else it goes behind these."""
    slow, quick = mesh.tasks(2, "keep")
    mesh.emits(mesh.spout, slow, 16)
    mesh.emits(mesh.spout, slow, 5)

    def tells(*times):
        for time in times:
            header = Header(kind=WATERMARK, source=mesh.spout, watermark=time, epoch=1)
            mesh.from_task(mesh.spout, header, lane=Lane.DATA)
        mesh.flush()

    tells(7.0, 8.0, 9.0)
    mesh.emits(mesh.spout, slow, 3)
    tells(10.0, 11.0)
    assert watermarks(mesh, quick) == [7.0, 8.0, 9.0, 10.0, 11.0]
    credit = mesh.managers[1].outputs.output_credits[mesh.spout]
    assert credit.held == 5 + 3 + 2
    mesh.consumes(slow, 1, 16)
    mesh.flush()
    assert watermarks(mesh, slow) == [-16, -5, 9.0, -3, 11.0]
    assert credit.held == 0


def test_a_watermark_takes_nobody_elses_place(mesh):
    slow = mesh.tasks(1, "keep")[0]
    other = mesh.tasks(2, "rows")[0]
    mesh.managers[1].rows.close(slow)
    mesh.managers[2].rows.close(slow)
    for source in (mesh.spout, other, mesh.spout, other):
        mesh.from_task(source, Header(kind=WATERMARK, source=source, watermark=1.0, epoch=1), lane=Lane.DATA)
    mesh.flush()
    assert [len(mesh.managers[number].rows.channels[slow].held) for number in (1, 2)] == [1, 1]


def test_lives_that_a_task_names_count_for_nothing(mesh):
    """Only managers know those of others."""
    header = Header(kind=MARKER, source=mesh.spout, round=7, target_lives=[9] * 6, epoch=1)
    mesh.from_task(mesh.spout, header, lane=Lane.DATA)
    mesh.deliver()
    assert {task: mesh.got(task) for task in mesh.readers} == {task: [7] for task in mesh.readers}


def test_one_for_a_former_life_of_a_task_is_dropped(mesh):
    """Its manager drops it; the source says it again to the new life."""
    old, other = mesh.tasks(2, "keep")
    mesh.mail.clear()
    mesh.deliver = lambda: None
    mesh.marks(7)
    del mesh.deliver
    mesh.begins(old, life=2)
    assert (mesh.got(old), mesh.got(other)) == ([], [7])


def test_a_marker_makes_nobody_a_sender(mesh):
    """A task's window is shared among those that send rows."""
    mesh.marks(7)
    consumers = [c for manager in mesh.managers.values() for c in manager.inputs.consumers.values()]
    assert [consumer.traffic.active(mesh.now) for consumer in consumers] == [0] * len(consumers)


def test_one_of_the_next_plan_waits_for_it(mesh):
    mesh.marks(7, epoch=2)
    assert not any(mesh.got(task) for task in mesh.readers)


def test_a_peer_must_name_a_life_for_each_task(mesh):
    """Or the message is dropped and counted."""
    manager, peer = mesh.managers[2], mesh.managers[1].members.peers[2]
    header = Header(kind=MARKER, source=mesh.spout, round=7, targets=mesh.tasks(2, "keep"), target_lives=[1], epoch=1)
    header.container = 1
    peer.send(Lane.DATA, header)
    mesh.deliver()
    assert manager.statistics.malformed == 1
    assert not any(mesh.got(task) for task in mesh.readers)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(0, 3), st.integers(1, 20)),
        st.tuples(st.just("mark"), st.sets(st.integers(0, 3)), st.none()),
        st.tuples(st.just("takes"), st.integers(0, 3), st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_each_task_gets_rows_and_markers_in_the_order_in_which_they_were_said(steps):
    mesh = Marked(containers=2, bolts=2)
    said = {task: [] for task in mesh.readers}
    for number, (what, which, rows) in enumerate(steps, 1):
        if what == "rows":
            mesh.emits(mesh.spout, mesh.readers[which], rows)
            said[mesh.readers[which]].append(-rows)
        elif what == "mark":
            targets = [mesh.readers[each] for each in sorted(which)]
            mesh.marks(number, targets)
            for task in targets or mesh.readers:
                said[task].append(number)
        else:
            take_all(mesh, mesh.readers[which])
        assert all(mesh.got(task) == said[task][: len(mesh.got(task))] for task in mesh.readers)
    for _ in steps:
        for task in mesh.readers:
            take_all(mesh, task)
    assert {task: mesh.got(task) for task in mesh.readers} == said


def take_all(mesh, task):
    mesh.consumes(task, 1, -sum(each for each in mesh.got(task) if each < 0))
    mesh.flush()
