"""A task's part in snapshots: what it reports, what it stores and puts back, and when its timeline is over for it."""

from __future__ import annotations

import contextlib
import gc

import pytest

from ardea import Bolt
from ardea.backends.contract import ScratchError
from ardea.errors import StateError, UserError
from ardea.heron_instance.snapshots import TaskSnapshots
from ardea.heron_instance.states import States
from ardea.keyed import KeyedState, TaskState
from ardea.plan.physical import TaskPlan
from ardea.protocol.wire_pb2 import Order, SnapshotOrder
from ardea.snapshots.key_groups import Keys
from ardea.snapshots.manifest import File, Manifest, Part, encode_manifest, manifest_name


class Count(Bolt):
    counts = KeyedState(default=0)
    place = TaskState(default=0)


class Store:
    """Writes when it is told to."""

    def __init__(self):
        self.files, self.begun = {}, []

    def write(self, file, content, done):
        self.begun.append((file, content, done))

    def finish(self, error=None):
        file, content, done = self.begun.pop(0)
        if error is None:
            try:
                self.files[file] = b"".join(content)
            except UserError as refused:
                error = refused
        done(error)

    def read(self, file, most=None):
        if file not in self.files:
            raise FileNotFoundError(file)
        return self.files[file][:most]


class Task:
    """Number 3 in its life 7, of timeline 1."""

    def __init__(self):
        self.store = Store()
        self.snapshots = TaskSnapshots(TaskPlan(3, "count", 0, 1), 7, self.store)
        self.version = 0
        self.ordered(timeline=1)
        self.new_object()
        self.snapshots.put_back(self.states)

    def new_object(self):
        self.component = Count()
        self.states = States(self.component, Keys("count", 0, 1, 720, 1))

    def ordered(self, **order):
        self.version += 1
        said = SnapshotOrder(lives={3: 7}, **order)
        self.snapshots.ordered(Order(term=1, version=self.version, snapshots=said))
        self.snapshots.look()

    def takes(self, number, error=None):
        self.snapshots.take(number, self.states)
        self.store.finish(error)
        self.snapshots.look()
        self.states.settle()

    def goes_back(self, timeline, number):
        self.ordered(timeline=timeline, restore=number, committed=number)
        self.new_object()
        return self.snapshots.put_back(self.states)

    @property
    def names(self):
        """Of the files that its last snapshot needs."""
        return [file.name.rpartition("/")[2] for file in self.snapshots.report.files]

    def committed(self, number, **changed):
        """The list of that snapshot lies in the store."""
        files = self.snapshots.report.files
        listed = tuple(File(each.name, changed.get("checksum", each.checksum), each.bytes) for each in files)
        manifest = Manifest(number=number, timeline=1, parts={3: Part("count", changed.get("index", 0), listed)})
        self.store.files[manifest_name(number)] = encode_manifest(manifest)


@pytest.fixture
def task():
    return Task()


def taken(task):
    """Snapshot 5 holds one word, and counts."""
    task.component.counts["heron"] = 2
    task.takes(5)
    task.committed(5)


def test_what_was_taken_is_reported_once_it_is_stored(task):
    task.snapshots.aligned(0.5, 100)
    task.snapshots.take(5, task.states)
    task.snapshots.look()
    assert task.snapshots.report.number == 0
    task.store.finish()
    task.snapshots.look()
    report = task.snapshots.report
    (file,) = report.files
    assert (report.timeline, report.number, file.name) == (1, 5, "t1/0.5/3-7.base")
    assert (report.aligned, report.aside, file.bytes) == (0.5, 100, len(task.store.files[file.name]))


def test_the_next_report_says_nothing_of_the_snapshot_before(task):
    task.snapshots.aligned(0.5, 100)
    task.takes(5)
    task.snapshots.moved()
    task.snapshots.aligned(0.0, 0)
    task.takes(6)
    report = task.snapshots.report
    assert (report.number, report.aligned, report.aside, report.moved) == (6, 0.0, 0, 5)


def test_what_cannot_be_stored_is_given_up_with_the_reason(task):
    task.takes(5, OSError("no space"))
    report = task.snapshots.report
    assert (report.number, report.gives_up) == (0, 5)
    assert report.why == "t1/0.5/3-7.base cannot be stored: no space"


def test_a_backend_that_cannot_be_read_takes_all_back_and_no_snapshot_is_given_up(task):
    """A store may be written again later; the task's own disk is made anew."""
    with pytest.raises(ScratchError, match="damaged"):
        task.takes(5, ScratchError("damaged"))
    assert task.snapshots.report.gives_up == 0


def test_a_backend_that_was_closed_while_it_was_read_takes_nothing_back_once_more(task):
    taken(task)
    task.snapshots.take(6, task.states)
    task.store.finish(ScratchError("closed"))
    assert task.goes_back(2, 5) == 5
    assert task.snapshots.timeline.works


def test_state_comes_back_into_a_new_object(task):
    taken(task)
    task.component.counts["lost"] = 1
    assert task.goes_back(2, 5) == 5
    assert dict(task.component.counts) == {"heron": 2}
    assert (task.snapshots.report.timeline, task.snapshots.report.number) == (2, 0)


def test_what_was_being_stored_when_the_timeline_ended_is_not_reported_in_the_next(task):
    taken(task)
    task.snapshots.take(6, task.states)
    task.goes_back(2, 5)
    task.store.finish()
    task.snapshots.look()
    assert task.snapshots.report.number == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda task: task.store.files.clear(), r"0\.5\.manifest is missing"),
        (lambda task: task.store.files.pop("t1/0.5/3-7.base"), r"t1/0\.5/3-7\.base is missing"),
        (lambda task: task.committed(5, checksum=1), r"t1/0\.5/3-7\.base of snapshot 0\.5\.manifest is damaged"),
        (lambda task: task.committed(5, index=1), "does not have all tasks of count"),
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


@pytest.mark.parametrize("damage", [False, True])
def test_no_garbage_is_looked_for_while_the_state_is_read(task, damage):
    """A collection looks at every key that is there, again and again."""
    taken(task)
    read, collected = task.store.read, []

    def reading(file, most=None):
        collected.append(gc.isenabled())
        return b"" if damage and not file.endswith(".manifest") else read(file, most)

    task.store.read = reading
    with pytest.raises(StateError) if damage else contextlib.nullcontext():
        task.goes_back(2, 5)
    assert (set(collected), gc.isenabled()) == ({False}, True)


def test_a_wait_inside_the_authors_code_ends_when_the_timeline_does(task):
    assert not task.snapshots.overdue
    task.snapshots.ordered(Order(term=1, version=9, snapshots=SnapshotOrder(timeline=2)))
    assert task.snapshots.overdue


@pytest.mark.parametrize("why", ["broke", "lost"])
def test_an_error_or_a_loss_ends_its_part_and_is_reported_until_it_goes_back(task, why):
    task.snapshots.broke("ValueError: no") if why == "broke" else task.snapshots.lost("no rows")
    report = task.snapshots.report
    assert (report.broken, report.lost) == (("ValueError: no", False) if why == "broke" else ("no rows", True))
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


def test_deltas_follow_the_last_base_until_they_are_larger_than_half_of_it(task):
    counts = task.component.counts
    counts.update({f"w{i}": i for i in range(1000)})
    task.takes(5)
    kinds = []
    for number in range(6, 16):
        counts.update({f"w{i}": number for i in range(100)})
        task.takes(number)
        kinds.append([name.rpartition(".")[2] for name in task.names])
    assert kinds[0] == ["base", "delta"]
    assert all(kind in ([*kinds[at - 1], "delta"], ["base"]) for at, kind in enumerate(kinds[1:], 1))
    assert kinds.count(["base"]) == 1
    task.committed(15)
    expected = dict(counts)
    task.goes_back(2, 15)
    assert dict(task.component.counts) == expected


def test_small_deltas_are_not_piled_up_for_ever(task):
    task.component.counts.update({f"w{i}": i for i in range(5000)})
    task.takes(5)
    most = 0
    for number in range(6, 70):
        task.takes(number)
        most = max(most, len(task.names))
    assert most == 51


def test_after_a_rollback_deltas_follow_the_files_that_were_put_back(task):
    task.component.counts.update({f"w{i}": i for i in range(100)})
    taken(task)
    task.goes_back(2, 5)
    task.component.counts["heron"] += 1
    task.takes(9)
    assert [file.name for file in task.snapshots.report.files] == ["t1/0.5/3-7.base", "t2/0.9/3-7.delta"]
    task.committed(9)
    task.goes_back(3, 9)
    assert task.component.counts["heron"] == 3


def test_what_could_not_be_stored_is_in_the_next_file(task):
    task.component.counts.update({f"w{i}": i for i in range(100)})
    task.takes(5)
    task.component.counts["heron"] = 1
    del task.component.counts["w7"]
    task.takes(6, OSError("no space"))
    task.component.counts["egret"] = 2
    task.takes(7)
    assert task.names == ["3-7.base", "3-7.delta"]
    task.committed(7)
    task.goes_back(2, 7)
    counts = task.component.counts
    assert (counts["heron"], counts["egret"], "w7" in counts, len(counts)) == (1, 2, False, 101)


def test_while_a_file_is_being_written_no_other_snapshot_is_taken(task):
    task.component.counts["heron"] = 1
    task.snapshots.take(5, task.states)
    task.component.counts["egret"] = 2
    task.snapshots.take(6, task.states)
    assert (task.snapshots.report.gives_up, task.snapshots.timeline.taken) == (6, 6)
    assert task.snapshots.report.why == "t1/0.5/3-7.base is still being written"
    task.store.finish()
    task.snapshots.look()
    assert (task.snapshots.report.number, task.store.begun) == (5, [])
    task.takes(7)
    task.committed(7)
    task.goes_back(2, 7)
    assert dict(task.component.counts) == {"heron": 1, "egret": 2}


def test_what_is_changed_while_a_file_is_written_is_not_in_it(task):
    counts = task.component.counts
    counts.update({"heron": 1, "egret": [1]})
    task.snapshots.take(5, task.states)
    counts["heron"] = 2
    counts["egret"].append(2)
    counts["late"] = 1
    task.store.finish()
    task.snapshots.look()
    task.committed(5)
    task.goes_back(2, 5)
    assert dict(task.component.counts) == {"heron": 1, "egret": [1]}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("heron", {1}, " holds at 'heron' a set, which cannot be stored"),
        (("a", "\ud800"), 1, ": a str in a key is not valid Unicode"),
        ("heron", "\ud800", " holds at 'heron' a str, which cannot be stored"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_state_and_key(task, key, value, says):
    task.component.counts["sound"] = 1
    task.component.counts[key] = value
    with pytest.raises(UserError, match=f"state 'counts'{says}"):
        task.takes(5)


class Place:
    """A task that is ``index`` of so many, which goes on from snapshot 5 of others."""

    def __init__(self, store, index, tasks):
        self.store = store
        self.snapshots = TaskSnapshots(TaskPlan(10 + index, "count", index, 1), 1, store)
        self.component = Count()
        self.states = States(self.component, Keys("count", index, tasks, 12, 1))
        said = SnapshotOrder(timeline=1, lives={10 + index: 1})
        self.snapshots.ordered(Order(term=1, version=1, snapshots=said))
        self.snapshots.look()

    def put_back(self, timeline):
        said = SnapshotOrder(timeline=timeline, restore=5, lives={self.snapshots._task.task: 1})
        self.snapshots.ordered(Order(term=1, version=timeline, snapshots=said))
        self.snapshots.look()
        return self.snapshots.put_back(self.states)

    def part(self):
        files = tuple(File(each.name, each.checksum, each.bytes) for each in self.snapshots.report.files)
        return Part("count", self.snapshots._task.index, files)


def divided(tasks):
    """A store with snapshot 5 of so many tasks, each with its own keys and its index."""
    store, parts = Store(), {}
    for index in range(tasks):
        task = Place(store, index, tasks)
        task.snapshots.put_back(task.states)
        keys = task.states._keys
        task.component.counts.update({n: n for n in range(100) if keys.group(n) in keys.owned})
        task.component.place = index
        task.snapshots.take(5, task.states)
        store.finish()
        task.snapshots.look()
        parts[10 + index] = task.part()
    parts[99] = Part("other", 0, ())
    store.files[manifest_name(5)] = encode_manifest(Manifest(number=5, timeline=1, parts=parts))
    return store


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5), (5, 2), (3, 3), (12, 7)])
def test_keys_are_found_in_the_files_of_those_that_had_them(before, after):
    store, found = divided(before), {}
    for index in range(after):
        task = Place(store, index, after)
        assert task.put_back(2) == 5
        counts = task.component.counts
        assert not found.keys() & counts.keys()
        found |= counts.copy()
        assert task.component.place == (index if index < before else 0)
        assert (len(task.snapshots._files) > 0) == (before == after), "a delta may not follow files with keys of others"
    assert found == {n: n for n in range(100)}


def test_a_task_reads_no_more_files_than_it_needs():
    store = divided(4)
    read = []
    reads = store.read
    store.read = lambda file, most=None: read.append(file) or reads(file, most)
    Place(store, 0, 4).put_back(2)
    assert len(read) == 2, "the list, and its own"
    read.clear()
    Place(store, 3, 12).put_back(2)
    assert [name.rpartition("/")[2] for name in read[1:]] == ["11-1.base", "13-1.base"], "its keys, and its index"
    read.clear()
    Place(store, 1, 2).put_back(2)
    assert [name.rpartition("/")[2] for name in read[1:]] == ["12-1.base", "13-1.base", "11-1.base"]


def test_a_component_that_is_new_begins_with_nothing():
    store = divided(1)
    task = Place(store, 0, 1)
    task.snapshots._task = TaskPlan(10, "newcomer", 0, 1)
    assert task.put_back(2) == 5
    assert dict(task.component.counts) == {}


def test_a_value_of_its_own_is_reported_unless_it_is_the_default(task):
    task.takes(5)
    assert not task.snapshots.report.bound
    task.component.place = 4
    task.takes(6)
    assert task.snapshots.report.bound
    task.committed(6)
    task.goes_back(2, 6)
    assert task.snapshots.report.bound
    task.component.place = 0
    task.takes(9)
    assert not task.snapshots.report.bound
