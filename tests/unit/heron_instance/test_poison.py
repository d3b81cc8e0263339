"""Rows that a bolt skips, what they are called, and when the tuple being processed is noted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ardea import Bolt, Topology
from ardea.heron_instance.current_tuple import CurrentTuple
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.poison import Poison, RowHashes
from ardea.heron_instance.snapshots import RollingBack, TaskSnapshots
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import encode_batch
from ardea.protocol.wire_pb2 import ARROW, Blamed, Header, Order, SnapshotOrder
from ardea.testing import CollectBolt, RowsSpout
from tests.unit.heron_instance.bench import Bench

ROWS = [(0,), (1,), (2,)]


class Pass(Bolt):
    outputs = ("n",)

    def process(self, tup):
        self.emit((tup["n"],))


class Chain(Topology):
    numbers = RowsSpout.of(["n"], []).spec()
    passes = Pass.spec(inputs=[numbers])
    kept = CollectBolt.spec(inputs=[passes])
    letters = CollectBolt.spec(inputs=[passes["__dead_letter"]])
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE"}


def batch_of(rows=ROWS, stream="default", source="numbers"):
    return InputBatch(Header(rows=len(rows)), [b""], list(rows), source, StreamPlan(stream, ("n",)))


def hash_of(row):
    return RowHashes(pickle=False).of(batch_of([row]), 0)


class Task:
    """The bolt's, in timeline 1."""

    def __init__(self, path):
        self.bench = Bench(Chain, "passes", "numbers")
        self.runner, env = self.bench.executor.runner, self.bench.executor.env
        env.current_tuple = self.box = CurrentTuple(path, RowHashes(pickle=False).ids)
        env.snapshots = self.snapshots = TaskSnapshots(env.task, 1, None)
        self.version = 0
        self.ordered()
        self.snapshots.timeline.restored()
        self.poison = Poison(self.runner._parts, self.snapshots, self.runner.emitted)

    def ordered(self, *blamed):
        self.version += 1
        said = SnapshotOrder(timeline=1, lives={self.snapshots._task.task: 1}, blamed=blamed)
        self.snapshots.ordered(Order(term=1, version=self.version, snapshots=said))
        self.snapshots.look()

    def takes(self, batch):
        self.poison.take_out(batch)
        return batch.rows, self.bench.executor.task_output.buffers["__dead_letter"].rows.values


@pytest.fixture
def task(tmp_path):
    return Task(tmp_path / "task-2.current")


def test_a_row_has_the_same_hash_whenever_it_comes_and_another_one_than_other_rows():
    hashes = RowHashes(pickle=False)
    others = [batch_of([(1,)]), batch_of([(1,)], stream="other"), batch_of([(1,)], source="others"), batch_of([("1",)])]
    assert len({hashes.of(batch, 0) for batch in others} - {0}) == 4
    assert hashes.of(batch_of(), 1) == hashes.of(batch_of([(1,)]), 0)


def test_a_row_that_cannot_be_encoded_has_none():
    assert RowHashes(pickle=False).of(batch_of([(object(),)]), 0) == 0


@pytest.mark.parametrize(
    ("component", "times", "skipped"), [("passes", 3, True), ("passes", 2, False), ("kept", 3, False)]
)
def test_a_row_is_skipped_once_its_own_bolt_was_blamed_for_it_often_enough(task, component, times, skipped):
    task.ordered(Blamed(component=component, row=hash_of((1,)), times=times))
    task.poison.look()
    rows, letters = task.takes(batch_of())
    assert rows == ([(0,), (2,)] if skipped else ROWS)
    assert letters == ([(None, "numbers:default", [1])] if skipped else [])


def test_after_the_commit_it_is_processed_again(task):
    task.ordered(Blamed(component="passes", row=hash_of((1,)), times=3))
    task.poison.look()
    task.ordered()
    task.poison.look()
    assert task.takes(batch_of()) == (ROWS, [])


def test_one_row_is_blamed_by_its_hash_and_of_several_none(task):
    for rows, blamed in ((range(1, 2), hash_of((1,))), (range(3), 0)):
        with pytest.raises(RollingBack):
            task.poison.blame(batch_of(), rows, "why")
        assert (task.snapshots.report.broken, task.snapshots.report.blamed) == ("why", blamed)


def test_tuples_are_noted_from_a_death_of_the_component_until_the_next_commit(task, tmp_path):
    calls, box = task.runner._calls, task.box
    batch = batch_of()
    for order, armed in (((), False), ((Blamed(component="passes", times=1),), True), ((), False)):
        task.ordered(*order)
        task.poison.look()
        assert not task.poison.look(), "nothing is new"
        calls.begun(None)
        task.runner.emitted.begin(batch)
        box.begin(batch)
        calls.run(batch, 0, 2)
        left = CurrentTuple.left(tmp_path / "task-2.current").tolist()
        assert left == ([hash_of((1,))] if armed else [])


class Coarse(Bolt):
    column_types = {"n": "timestamp[us]"}

    def process_columns(self, columns): ...


class Coarsely(Topology):
    numbers = RowsSpout.of(["n"], []).spec()
    coarse = Coarse.spec(inputs=[numbers])


def test_what_does_not_fit_and_is_no_value_of_python_is_none_in_its_letter():
    runner, letters = Bench(Coarsely, "coarse", "numbers").executor.runner, []
    runner.emitted.acking.dead_letter = lambda batch, index: letters.append(batch.rows[index])
    batch = pa.record_batch({"n": pa.array([1000, 2001, 3000], pa.timestamp("ns"))})
    header = Header(codec=ARROW, rows=3)
    kept = runner._calls.read(header, [encode_batch(batch)], "numbers", StreamPlan("default", ("n",)))
    assert (len(kept.rows), letters) == (2, [(None,)])
