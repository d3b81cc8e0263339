"""Which micro-batch a transaction has, in whatever life of whoever decides; and what may be removed."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import UserError
from ardea.component import install
from ardea.errors import FailedException
from ardea.spark import SparkTridentSpout
from ardea.spark.index import StreamIndexWriter
from ardea.spark.progress import read_mark
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.trident import Count, MemoryMapState, TridentTopology
from ardea.trident.spout import Attempt
from ardea.trident.store import MemoryStore, StreamStore
from tests.simulation.spark.test_spout import load
from tests.sizes import share


class Stream:
    """A folder with an index, and both ends of a Trident spout over it; transactions are stored as the engine does."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "progress").mkdir(parents=True)
        self.index = StreamIndexWriter(folder)
        self.store = StreamStore(MemoryStore(), "t", "numbers")
        self.begin()

    def begin(self):
        """A new life of all tasks."""
        spout = SparkTridentSpout(load, "n bigint", str(self.folder))
        contexts = [
            SimpleNamespace(
                topology_id="t", this_component_id="s", this_task_index=index, component_tasks=lambda _: range(2)
            )
            for index in range(2)
        ]
        self.coordinator = spout.coordinator({}, contexts[0], self.store)
        self.emitters = [spout.emitter({}, context, self.store) for context in contexts]

    def publish(self, partitions=3):
        number = self.index.next_batch
        run = Run(Folder(str(self.folder)), f"run-{number}", 1, frozenset())
        (self.folder / run.name).mkdir()
        columns = [pa.record_batch({"n": pa.array([10 * number + place], pa.int64())}) for place in range(partitions)]
        reports = [write_partition(run, place, 0, [column], self.folder) for place, column in enumerate(columns)]
        self.index.publish_batch(run.name, reports)

    def transaction(self, txid):
        previous = self.store.get(f"meta/{txid - 1}")
        span = self.coordinator.initialize_transaction(txid, previous, self.store.get(f"meta/{txid}"))
        self.store.put(f"meta/{txid}", span)
        return span[1:]

    def emitted(self, txid, *, first=False):
        rows = []
        collector = SimpleNamespace(emit_rows=rows.extend)
        for emitter in self.emitters:
            emitter.emit_batch(Attempt(txid, 0, first), self.store.get(f"meta/{txid}"), collector)
        return sorted(value for (value,) in rows)

    def acked(self):
        batches = self.index.known.batches.values()
        progress = self.folder / "progress"
        return [
            b.number for b in batches if all(read_mark(progress, p.number).batch == p.batches for p in b.partitions)
        ]


@pytest.fixture
def stream(tmp_path):
    stream = Stream(tmp_path / "stream")
    yield stream
    stream.index.close()


def test_each_micro_batch_is_one_transaction_and_comes_again_as_it_was(stream):
    assert not stream.coordinator.is_ready(1)
    stream.publish()
    assert stream.coordinator.is_ready(1)
    assert stream.transaction(1) == [0, 1]
    assert not stream.coordinator.is_ready(2)
    assert stream.transaction(2) == [1, 1]  # asked too early: it has no rows
    stream.publish()
    assert stream.transaction(3) == [1, 2]
    for _ in range(2):
        assert [stream.emitted(txid) for txid in (1, 2, 3)] == [[0, 1, 2], [], [10, 11, 12]]
        stream.begin()
        assert [stream.transaction(txid) for txid in (1, 2, 3)] == [[0, 1], [1, 1], [1, 2]]


@settings(max_examples=share(30))
@given(events=st.lists(st.sampled_from(["again", "next", "life", "publish", "removed"]), max_size=20))
def test_every_row_is_in_one_batch(tmp_path_factory, events):
    """Same transaction, same rows; committed batches are disjoint, nothing is left out: through attempts and lives."""
    stream, seen, committed, txid = Stream(tmp_path_factory.mktemp("stream")), {}, [], 1
    for event in [*events, *["next"] * 21]:
        if event == "publish":
            stream.publish(partitions=1 + stream.index.next_batch % 3)
        if event == "life":
            stream.begin()
        if event == "removed" and stream.acked()[:1] == [*stream.index.known.batches][:1] != []:
            stream.index.remove_first()
        stream.transaction(txid)
        rows = stream.emitted(txid, first=True)
        assert rows == seen.setdefault(txid, rows)
        if event == "next":
            committed += rows
            stream.coordinator.success(txid)
            txid += 1
    published = range(stream.index.next_batch)
    stream.index.close()
    assert committed == [10 * number + place for number in published for place in range(1 + number % 3)]


def test_what_is_committed_may_be_removed(stream):
    for _ in range(3):
        stream.publish()
    for txid in (1, 2, 3):
        stream.transaction(txid)
    assert stream.acked() == []
    stream.coordinator.success(1)
    assert stream.acked() == [0]
    stream.begin()  # success(2) was not heard
    stream.emitted(3, first=False)
    assert stream.acked() == [0]
    stream.emitted(3, first=True)
    assert stream.acked() == [0, 1]
    stream.index.remove_first()
    with pytest.raises(FailedException, match="micro-batch 0 is committed and removed"):
        stream.emitted(1)


def test_another_txid_begins_with_what_is_left(stream):
    for _ in range(2):
        stream.publish()
    stream.index.remove_first()
    assert stream.coordinator.is_ready(1)
    assert stream.transaction(1) == [1, 2]


def test_a_micro_batch_without_rows_is_not_waited_for(stream):
    stream.publish(0)
    assert stream.coordinator.is_ready(1)
    assert stream.transaction(1) == [1, 1]
    stream.publish(0)
    stream.publish()
    assert stream.transaction(2) == [2, 3]
    for _ in range(2):
        stream.index.remove_first()  # the driver sees nothing to wait for
    assert [stream.emitted(txid) for txid in (1, 2)] == [[], [20, 21, 22]]
    assert not stream.coordinator.is_ready(3)


def test_it_is_finished_when_this_runs_query_has_ended(stream):
    stream.publish()
    stream.index.complete("the run before")
    assert not stream.coordinator.is_ready(1) or not stream.coordinator.finished(1)
    stream.index.complete("t")
    assert stream.coordinator.is_ready(1)
    assert not stream.coordinator.finished(1)
    stream.transaction(1)
    assert not stream.coordinator.is_ready(2)
    assert stream.coordinator.finished(2)


def test_a_folder_that_was_lost_is_noticed(stream):
    stream.publish()
    stream.transaction(1)
    stream.begin()
    stream.index.replace_all("run-x", [])
    with pytest.raises(UserError, match="another stream than the one that transaction 1 read"):
        stream.coordinator.is_ready(2)


def test_a_checkpoint_that_was_lost_is_noticed_after_one_micro_batch(stream):
    """Spark would call the next one 0, which is the number of the one that is published."""
    stream.publish()
    driver = SparkTridentSpout(load, "n bigint", str(stream.folder)).companion()
    install(driver, "s_driver", None)
    context = SimpleNamespace(
        this_task_index=0, this_component_id="s_driver", topology_id="t", clock=float, task_data={}
    )
    with pytest.raises(UserError, match="is lost, and the index goes on at micro-batch 1"):
        driver.initialize({}, context)


def test_its_driver_comes_along(tmp_path):
    topology = TridentTopology("Counting")
    stream = topology.new_stream("numbers", SparkTridentSpout(load, "n bigint", str(tmp_path)))
    stream.group_by("n").persistent_aggregate(MemoryMapState(), Count(), "count")
    driver = topology.plan()["spout-numbers_driver"]
    assert driver.tasks == 1
    assert [(source.component, source.stream) for source in driver.inputs] == [("$mastercoord-bg0", "$success")]
