"""Effectively once: positions are in snapshots and win over the group, which hears of those that count."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ardea.errors import UserError
from ardea.kafka.assignment import Assignment
from ardea.kafka.beginning import Stored, mark_of
from ardea.kafka.marks import PartitionId, to_commit
from ardea.kafka.positions import KeptMarks, Positions
from ardea.kafka.reading import KEEP, RecordSpout
from ardea.kafka.sharing import owner
from tests.unit.kafka.test_assignment import source, survey
from tests.unit.kafka.test_reading import Task, records

PLACES = [PartitionId("t", number) for number in range(5)]


class Remembers(Task):
    """A task whose state was restored."""

    restored_items: list = []
    marks: list = []

    def initialize(self, config, context):
        self.positions, self.complete = [*self.restored_items], [*self.marks]
        super().initialize({**config, "topology.reliability.mode": "EFFECTIVELY_ONCE"}, context)

    def counts(self, number):
        RecordSpout.committed(self, number)
        return self.committed()


def offsets(task):
    return [tup_id[1] for ids, _ in task.emitted for tup_id in ids]


def test_the_group_hears_of_a_position_once_its_snapshot_counts(monkeypatch):
    waiting = records(10)
    task = Remembers(waiting[:4], monkeypatch, {0: 10})
    task.next_tuple()
    task.snapshot(1)
    assert task.positions == [["t", 0, 4]]
    assert task.committed() == {}, "nothing counts yet"
    task.snapshot(2)
    assert task.counts(1) == {0: 4}


def test_an_abandoned_snapshot_is_never_told(monkeypatch):
    waiting = records(4)
    task = Remembers(waiting, monkeypatch, {0: 10})
    task.next_tuple()
    task.snapshot(1)
    waiting += records(8)[4:]
    task.next_tuple()
    task.snapshot(2)
    assert task.counts(2) == {0: 8}
    assert task.counts(1) == {0: 8}
    assert offsets(task) == [*range(8)]


def test_of_snapshots_that_never_count_no_more_than_two_are_kept():
    """As while the store cannot be written."""
    positions, marks = Positions([], 0, 1), {PLACES[0]: KeptMarks(0)}
    for number in range(1, 1001):
        marks[PLACES[0]].read([number])
        positions.take(number, marks)
    assert len(positions._taken) == 2
    positions.counts(1000, marks)
    assert (marks[PLACES[0]].low, len(positions._taken)) == (1001, 0)


def test_a_restored_position_wins_over_the_group(monkeypatch):
    class Restored(Remembers):
        restored_items = [["t", 0, 6], ["gone", 3, 9]]

    task = Restored(records(10), monkeypatch, {0: 10}, committed=2)
    task.next_tuple()
    assert offsets(task) == [6, 7, 8, 9]
    assert task.committed() == {0: 6}, "the group follows"
    task.snapshot(3)
    assert task.positions == [["gone", 3, 9], ["t", 0, 10]], "a topic that is away keeps its place"


def test_an_update_is_for_another_object(monkeypatch):
    task = Remembers(records(4), monkeypatch, {0: 10})
    task.update(SimpleNamespace(this_component_id="lines", this_task_index=1, component_tasks=lambda _: [1, 2]))
    task.look(0)
    task.next_tuple()
    task.snapshot(1)
    assert task.positions == [["t", 0, 4]]


@pytest.mark.parametrize("tasks", [1, 2, 3, 7])
def test_each_position_is_one_tasks(tasks):
    items = [[*place, number] for number, place in enumerate(PLACES)]
    parts = [Positions(items, index, tasks).restored for index in range(tasks)]
    assert sorted(place for part in parts for place in part) == PLACES
    assert all(owner(place, tasks) == index for index, part in enumerate(parts) for place in part)


def test_another_runs_marks_do_not_matter_where_there_is_a_position():
    """A topology that begins from a savepoint has another id."""
    place = PLACES[0]
    found = survey({place: (0, 20)}, {place: Stored(9, mark_of("run-1"))})
    task = Assignment(source(), "run-1", 0, 1, Positions([[*place, 12]], 0, 1))
    marks = task.decide(found, ()).gained[place]
    assert (type(marks), marks.position, marks.low, marks.committed) == (KeptMarks, 12, 12, 9)
    fresh = Assignment(source(), "run-1", 0, 1, Positions([], 0, 1)).decide(found, ()).gained[place]
    assert (type(fresh), fresh.position) == (KeptMarks, 9)


def test_the_end_that_was_found_stays_the_end(monkeypatch):
    """Whatever is written after it, and however often all go back."""
    first = Remembers(records(10), monkeypatch, {0: 10}, end="latest")
    first.next_tuple()
    first.snapshot(1)
    assert first.positions == [["t", 0, 10, 10]]
    assert first.finished or first.counts(1)

    class Restored(Remembers):
        restored_items = [["t", 0, 6, 10]]

    task = Restored(records(20)[6:], monkeypatch, {0: 20}, end="latest")
    task.next_tuple()
    assert offsets(task) == [6, 7, 8, 9]
    task.snapshot(2)
    assert task.positions == [["t", 0, 10, 10]]
    task.counts(2)
    assert task.finished


@pytest.mark.parametrize("marked", [True, False], ids=["marked", "of an older version"])
def test_a_bounded_task_that_had_found_its_partitions_gets_no_other_one_when_all_go_back(marked, monkeypatch):
    first = Remembers(waiting := records(6), monkeypatch, {0: 10}, end="latest")
    first.snapshot(1)
    assert first.complete == [], "it has looked for none yet"
    first.next_tuple()
    first.snapshot(2)
    assert (first.positions, first.complete) == ([["t", 0, 6, 10]], [["run-1", 1, 0]])

    class Restored(Remembers):
        restored_items, marks = first.positions, first.complete if marked else []

    waiting = [*records(10)[6:], *records(3, partition=1)]
    task = Restored(waiting, monkeypatch, {0: 10, 1: 3}, end="latest")
    task.next_tuple()
    assert offsets(task) == ([6, 7, 8, 9] if marked else [6, 7, 8, 9, 0, 1, 2])
    task.look(0, 1)
    assert task.finished


@pytest.mark.parametrize("mark", [["run-0", 1, 0], ["run-1", 2, 0], ["run-1", 1, 1]], ids=["run", "plan", "task"])
def test_the_mark_of_another_run_plan_or_task_says_nothing(mark, monkeypatch):
    class Restored(Remembers):
        restored_items, marks = [["t", 0, 6, 10]], [mark]

    task = Restored(records(3, partition=1), monkeypatch, {0: 10, 1: 3}, end="latest")
    task.next_tuple()
    assert offsets(task) == [0, 1, 2]


def test_a_bounded_task_is_not_complete_before_each_of_its_partitions_has_a_position():
    """One that appeared between two steps of a survey is begun with at the next."""
    task = Assignment(source(end="latest"), "run-1", 0, 1, Positions([], 0, 1))
    found = survey({PLACES[0]: (0, 20)}, {PLACES[0]: Stored(9, mark_of("run-1"))})
    gained = task.decide(found._replace(places=(PLACES[0], PLACES[1])), ()).gained
    assert (list(gained), task.complete(gained)) == ([PLACES[0]], False)
    assert task.complete([PLACES[0], PLACES[1]])
    endless = Assignment(source(), "run-1", 0, 1, Positions([], 0, 1))
    assert not endless.complete(endless.decide(found, ()).gained)


def test_an_end_belongs_to_a_bounded_spout(monkeypatch):
    """A savepoint of one is begun from without end=."""

    class Restored(Remembers):
        restored_items = [["t", 0, 6, 10]]

    task = Restored(records(20)[6:], monkeypatch, {0: 20})
    task.next_tuple()
    assert offsets(task) == [*range(6, 20)]
    task.snapshot(1)
    assert task.positions == [["t", 0, 20]]


def test_an_end_goes_with_its_partition_to_another_task():
    items = [[*place, number, number + 100] for number, place in enumerate(PLACES)]
    parts = [Positions(items, index, 3) for index in range(3)]
    assert {place: end for part in parts for place, end in part.ends.items()} == {
        place: number + 100 for number, place in enumerate(PLACES)
    }
    taken = [item for part in parts for item in part.take(1, {})]
    assert sorted(taken) == sorted(items), "also of those that have not been found again"


@pytest.mark.parametrize("anew", [False, True], ids=["the same", "another of that name"])
def test_a_partition_that_was_away_goes_on_where_it_was_unless_it_was_deleted(anew, monkeypatch):
    """Kafka deletes a group's offset with its partition.  Before a snapshot counts the group hears of nothing more."""
    waiting = records(4)
    task = Remembers(waiting, monkeypatch, {0: 4, 1: 0})
    task.next_tuple()
    task.look(1)
    task.look(1)
    assert PartitionId("t", 0) not in task._marks
    task.snapshot(1)
    assert task.positions == [["t", 1, 0]], "what comes under that name after a rollback may be another one"
    if anew:
        task.survey = task.survey._replace(stored={PartitionId("t", 1): Stored(0, mark_of("run-1"))})
    task.ends[0] = 6
    task.look(0, 1)
    waiting += records(6)
    task.next_tuple()
    assert offsets(task) == [*range(4), *range(0 if anew else 4, 6)]
    assert task.committed().get(0, 0) == 0
    task.snapshot(2)
    assert task.counts(2)[0] == 6


def test_what_the_group_has_not_heard_of_a_partition_that_was_away_it_hears_when_that_is_back():
    place, left = PLACES[0], KeptMarks(4, committed=4)
    positions = Positions([], 0, 1)
    positions.leave(place, left)
    assert positions.back(place, Stored(2, mark_of("run-1"))) is left
    assert to_commit({place: left}) == {place: 4}
    assert positions.back(place, Stored(2, mark_of("run-1"))) is None, "once"


def test_an_end_is_the_same_when_a_partition_comes_back(monkeypatch):
    waiting = records(4)
    task = Remembers(waiting, monkeypatch, {0: 6, 1: 9}, end="latest", deleted="earliest")
    task.next_tuple()
    task.look(1)
    task.look(1)
    task.ends[0] = 10
    task.look(0, 1)
    waiting += records(10)
    task.next_tuple()
    assert offsets(task) == [*range(6)]


class Bounded(Remembers):
    """Had read one of two partitions halfway, and the other one not at all."""

    restored_items = [["t", 0, 6, 10], ["t", 1, 2, 5], ["elsewhere", 0, 2, 5]]


def test_a_bounded_partition_that_is_away_when_all_go_back_is_not_taken_for_read(monkeypatch, caplog):
    def task(deleted):
        made = Bounded(records(10), monkeypatch, {0: 10}, end="latest", deleted=deleted)
        made.next_tuple()
        made.now += KEEP
        made.idle()
        return made

    with pytest.raises(UserError, match=r"t\[1\] is not there any more; it was read up to offset 2 of 5: records were"):
        task("fail")
    made = task("earliest")
    assert "t[1] is not there any more; it was read up to offset 2 of 5: 3 were skipped" in caplog.text
    assert (made.finished, made._skipped.value) == (True, 3)


def test_one_that_comes_late_is_read_to_its_end(monkeypatch):
    waiting = records(10)
    task = Bounded(waiting, monkeypatch, {0: 10}, end="latest")
    task.next_tuple()
    task.ends[1] = 9
    task.look(0, 1)
    waiting += records(9, partition=1)
    task.next_tuple()
    assert offsets(task) == [*range(6, 10), *range(2, 5)]
    task.committed()
    assert task.finished
