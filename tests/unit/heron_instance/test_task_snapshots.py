"""A task's part in snapshots: what it reports, what it stores and puts back, and when its timeline is over for it."""

from __future__ import annotations

import pytest

from ardea import Bolt
from ardea.errors import StateError
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.heron_instance.states import States
from ardea.keyed import KeyedState
from ardea.protocol.wire_pb2 import Order, SnapshotOrder
from ardea.snapshots.manifest import File, Manifest, encode_manifest, manifest_name


class Count(Bolt):
    counts = KeyedState(default=0)


class Store:
    """Writes when it is told to."""

    def __init__(self):
        self.files, self.begun = {}, []

    def write(self, file, content, done):
        self.begun.append((file, content, done))

    def finish(self, error=""):
        file, content, done = self.begun.pop(0)
        if not error:
            self.files[file] = content
        done(error)

    def read(self, file):
        if file not in self.files:
            raise FileNotFoundError(file)
        return self.files[file]


class Task:
    """Number 3 in its life 7, of timeline 1."""

    def __init__(self):
        self.store = Store()
        self.snapshots = TaskSnapshots(3, 7, self.store)
        self.version = 0
        self.ordered(timeline=1)
        self.new_object()
        self.snapshots.put_back(self.states)

    def new_object(self):
        self.component = Count()
        self.states = States(self.component)

    def ordered(self, **order):
        self.version += 1
        said = SnapshotOrder(lives={3: 7}, **order)
        self.snapshots.ordered(Order(term=1, version=self.version, snapshots=said))
        self.snapshots.look()

    def committed(self, number, **changed):
        """The list of that snapshot lies in the store."""
        report = self.snapshots.report
        listed = File(report.file, changed.get("checksum", report.checksum), report.bytes)
        manifest = Manifest(number=number, timeline=1, files={changed.get("task", 3): listed})
        self.store.files[manifest_name(number)] = encode_manifest(manifest)


@pytest.fixture
def task():
    return Task()


def taken(task):
    """Snapshot 5 holds one word, and counts."""
    task.component.counts["heron"] = 2
    task.snapshots.take(5, task.states)
    task.store.finish()
    task.snapshots.look()
    task.committed(5)


def test_what_was_taken_is_reported_once_it_is_stored(task):
    task.snapshots.aligned(0.5, 100)
    task.snapshots.take(5, task.states)
    task.snapshots.look()
    assert task.snapshots.report.number == 0
    task.store.finish()
    task.snapshots.look()
    report = task.snapshots.report
    assert (report.timeline, report.number, report.file) == (1, 5, "t1/0.5/3-7.state")
    assert (report.aligned, report.aside, report.bytes) == (0.5, 100, len(task.store.files[report.file]))


def test_what_cannot_be_stored_is_given_up_with_the_reason(task):
    task.snapshots.take(5, task.states)
    task.store.finish("the disk is full")
    task.snapshots.look()
    report = task.snapshots.report
    assert (report.number, report.gives_up, report.why) == (0, 5, "the disk is full")


def test_state_comes_back_into_a_new_object(task):
    taken(task)
    task.component.counts["lost"] = 1
    task.ordered(timeline=2, restore=5, committed=5)
    task.new_object()
    assert task.snapshots.put_back(task.states) == 5
    assert dict(task.component.counts) == {"heron": 2}
    assert (task.snapshots.report.timeline, task.snapshots.report.number) == (2, 0)


def test_what_was_being_stored_when_the_timeline_ended_is_not_reported_in_the_next(task):
    taken(task)
    task.snapshots.take(6, task.states)
    task.ordered(timeline=2, restore=5, committed=5)
    task.new_object()
    task.snapshots.put_back(task.states)
    task.store.finish()
    task.snapshots.look()
    assert task.snapshots.report.number == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda task: task.store.files.clear(), r"0\.5\.manifest is missing"),
        (lambda task: task.store.files.pop("t1/0.5/3-7.state"), r"t1/0\.5/3-7\.state is missing"),
        (lambda task: task.committed(5, checksum=1), r"t1/0\.5/3-7\.state of snapshot 0\.5\.manifest is damaged"),
        (lambda task: task.committed(5, task=4), "has no file of task 3"),
    ],
)
def test_what_is_damaged_or_gone_is_named_and_nothing_else_is_put_back(task, damage, says):
    taken(task)
    damage(task)
    task.ordered(timeline=2, restore=5, committed=5)
    task.new_object()
    with pytest.raises(StateError, match=says):
        task.snapshots.put_back(task.states)
    assert not task.snapshots.timeline.works


def test_a_wait_inside_the_authors_code_ends_when_the_timeline_does(task):
    assert not task.snapshots.overdue
    task.snapshots.ordered(Order(term=1, version=9, snapshots=SnapshotOrder(timeline=2)))
    assert task.snapshots.overdue


@pytest.mark.parametrize("why", ["broke", "lost"])
def test_an_error_or_a_loss_ends_its_part_and_is_reported_until_it_goes_back(task, why):
    task.snapshots.broke("ValueError: no") if why == "broke" else task.snapshots.lost()
    report = task.snapshots.report
    assert (report.broken, report.lost) == (("ValueError: no", False) if why == "broke" else ("", True))
    assert not task.snapshots.timeline.works
    task.ordered(timeline=2)
    task.new_object()
    task.snapshots.put_back(task.states)
    assert (task.snapshots.report.broken, task.snapshots.report.lost) == ("", False)
    assert task.snapshots.timeline.works


def test_that_it_has_moved_is_told_by_the_snapshot_before(task):
    task.snapshots.take(5, task.states)
    task.snapshots.moved()
    assert task.snapshots.report.moved == 5
