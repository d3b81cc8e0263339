"""Micro-batches: the index that forgets, the publisher that holds Spark back, and tasks that follow."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import Topology, TopologyError, UserError
from ardea.spark import SparkStreamSpout, SparkTridentSpout
from ardea.spark.index import Head, IndexReader, Partition, Reports, StagedFile, StreamIndexWriter, write_report
from ardea.spark.progress import read_mark, write_mark
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.spark.stream_driver import HEARTBEAT, Publisher
from ardea.spark.trident import _Coordinator
from ardea.testing import CollectBolt, run
from ardea.trident.store import MemoryStore, StreamStore
from tests.process.waiting import eventually
from tests.simulation.spark.test_spout import Task, load

LOGGER = logging.getLogger(__name__)


def partition(number, rows=3):
    files = (StagedFile(f"run-1/part-{number}.arrow", 10, "ab", rows, 1),) if rows else ()
    return Partition(number, 0, files)


@given(st.lists(st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=3)), max_size=12), st.booleans())
def test_readers_see_what_is_left_and_numbers_go_on(steps, reopen):
    """A step publishes a micro-batch of partitions with so many rows, or (None) removes the oldest."""
    with tempfile.TemporaryDirectory() as name:
        folder, reader = Path(name), IndexReader(Path(name))
        index = StreamIndexWriter(folder)
        left, batches, partitions = [], 0, 0
        for step in steps:
            if step is None and left:
                assert index.remove_first().number == left.pop(0)[0]
            elif step is not None:
                batch = index.publish_batch("run-1", [partition(n, rows) for n, rows in enumerate(step)])
                numbers = [*range(partitions, partitions + sum(rows > 0 for rows in step))]
                assert [each.number for each in batch.partitions] == numbers
                left.append((batches, numbers))
                batches, partitions = batches + 1, partitions + len(numbers)
            if reopen:
                index.close()
                index = StreamIndexWriter(folder)
            reader.poll()
            assert [(number, [p.number for p in batch.partitions]) for number, batch in reader.batches.items()] == left
            assert [*reader.partitions] == [number for _, numbers in left for number in numbers]
            assert index.next_batch == batches
            assert reader.head.stream == index.head.stream
        index.close()


@pytest.fixture
def index(tmp_path):
    with StreamIndexWriter(tmp_path) as writer:
        yield writer


@pytest.fixture
def staged(tmp_path):
    """Publishes what a run reported: so many partitions of one batch each."""

    def publish(publisher, number, partitions=1):
        run = f"run-{number}"
        reports = Reports(tmp_path / run)
        for place in range(partitions):
            write_report(tmp_path / run, Partition(place, 7, partition(place).files))
            write_report(tmp_path / run, Partition(place, 8, ()))  # a later attempt
        publisher.publish(run, reports)

    (tmp_path / "progress").mkdir()
    return publish


def test_a_micro_batch_that_spark_repeats_is_recognised(index, staged):
    publisher = Publisher(index, 4, float, LOGGER)
    for number in range(2):
        assert publisher.admit(number)
        staged(publisher, number, 2)
    assert not publisher.admit(1)
    assert [batch.run for batch in index.known.batches.values()] == ["run-0", "run-1"]
    assert [p.attempt for batch in index.known.batches.values() for p in batch.partitions] == [7] * 4
    for wrong in (0, 3):
        with pytest.raises(UserError, match=f"goes on at micro-batch {wrong}, the index at 2"):
            publisher.admit(wrong)


def test_what_is_removed_is_recognised_too(index, staged, tmp_path):
    publisher = Publisher(index, 1, float, LOGGER)
    staged(publisher, 0)
    write_mark(tmp_path / "progress", 0, 1)
    assert [batch.number for batch in publisher.remove_acked(tmp_path / "progress")] == [0]
    assert not publisher.admit(0)
    assert publisher.admit(1)


def test_spark_waits_while_too_much_is_not_acked(index, staged, tmp_path, caplog):
    now = [0.0]
    publisher = Publisher(index, 2, lambda: now[0], LOGGER)
    staged(publisher, 0)
    staged(publisher, 1, 2)
    admitted = []
    thread = threading.Thread(target=lambda: admitted.append(publisher.admit(2)))
    thread.start()
    marks = tmp_path / "progress"
    with caplog.at_level(logging.INFO):
        now[0] = HEARTBEAT
        write_mark(marks, 1, 1)
        write_mark(marks, 2, 1)
        eventually(lambda: (publisher.remove_acked(marks), "Spark waits: 2" in caplog.text)[1], 10, "a heartbeat")
    assert thread.is_alive()  # the first is not acked, so the second does not count
    write_mark(marks, 0, 1)
    assert [batch.number for batch in publisher.remove_acked(marks)] == [0, 1]
    thread.join(10)
    assert admitted == [True]


def test_spark_does_not_wait_when_the_topology_ends(index, staged):
    publisher = Publisher(index, 1, float, LOGGER)
    staged(publisher, 0)
    errors = []

    def wait():
        with pytest.raises(UserError, match="the topology ends") as error:
            publisher.admit(1)
        errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    publisher.stop()
    thread.join(10)
    assert errors


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """Publishes micro-batches of two partitions, with the numbers of their rows' micro-batch and partition."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "spark" / "s"
    (folder / "progress").mkdir(parents=True)
    with StreamIndexWriter(folder) as writer:

        def publish():
            number = writer.next_batch
            run = Run(Folder(str(folder)), f"run-{number}", 1, frozenset())
            (folder / run.name).mkdir()
            halves = [pa.record_batch({"n": pa.array([number * 10 + half], pa.int64())}) for half in range(2)]
            written = [write_partition(run, place, 0, [half], tmp_path) for place, half in enumerate(halves)]
            return writer.publish_batch(run.name, written)

        writer.stage, writer.folder = publish, folder
        yield writer


def marks(folder):
    """Of the partitions that are begun: how many batches are acked."""
    return {int(file.name): read_mark(file.parent, int(file.name)).batch for file in (folder / "progress").iterdir()}


def test_tasks_follow_and_forget_what_is_removed(stage):
    task = Task(SparkStreamSpout(load, "n bigint"))
    stage.stage()
    stage.stage()
    assert task.exhaust() == [0, 1, 10, 11]
    for ids in task.ids[:2]:
        task.task.ack_batch(ids)
    assert marks(stage.folder) == {0: 1, 1: 1, 2: 0, 3: 0}
    stage.remove_first()
    shutil.rmtree(stage.folder / "run-0")
    stage.stage()
    assert task.exhaust() == [0, 1, 10, 11, 20, 21]
    assert marks(stage.folder) == dict.fromkeys(range(2, 6), 0)
    assert not task.finished
    stage.complete("t")
    task.exhaust()
    assert task.finished


def test_a_task_that_comes_back_skips_what_is_removed_under_it(stage):
    """It read the index before the driver removed what its former life had acked."""
    stage.stage()
    stage.stage()
    task = Task(SparkStreamSpout(load, "n bigint"))
    index = task.task._index

    def removed_just_now():
        index.poll = poll
        poll()
        shutil.rmtree(stage.folder / "run-0")
        stage.remove_first()
        return True

    poll, index.poll = index.poll, removed_just_now
    task.task.next_tuple()
    assert task.exhaust() == [10, 11]


def test_a_stream_goes_on_beyond_numbers_of_64_bits(stage):
    """Ids say the partition, the batch and the row; here they cross the largest 64-bit number."""
    stage._replace([Head("stream", 1023, 2046)])
    for _ in range(3):
        stage.stage()
    stage.complete("")
    task = Task(SparkStreamSpout(load, "n bigint"))
    task.exhaust()
    task.task.ack_batch([tup_id for ids in task.ids for tup_id in ids])
    assert marks(stage.folder) == dict.fromkeys(range(2046, 2052), 1)
    for mark in (stage.folder / "progress").iterdir():
        mark.unlink()

    class Long(Topology):
        rows = SparkStreamSpout(load, "n bigint").spec("s").cls.spec("s")
        sink = CollectBolt.spec(inputs=[rows])

    result = run(Long)
    assert result.state == "SUCCEEDED", result.reason
    assert marks(stage.folder) == dict.fromkeys(range(2046, 2052), 1)


def test_another_stream_is_refused(stage):
    task = Task(SparkStreamSpout(load, "n bigint"))
    stage.stage()
    task.exhaust()
    stage.replace_all("run-x", [])
    with pytest.raises(UserError, match="began the stream again"):
        task.task.next_tuple()


def test_a_transaction_that_began_before_the_stream_did_comes_again_without_rows(tmp_path):
    """It began for another stream of its batch group, whose rows states may have counted already."""
    store = StreamStore(MemoryStore(), "topology", "stream")
    coordinator = _Coordinator(tmp_path, "topology", store)
    span = coordinator.initialize_transaction(1, None, None)
    assert span is not None, "None would not be stored"
    store.put("meta/1", span)
    assert coordinator.initialize_transaction(2, span, None) == span
    assert not coordinator.is_ready(2)
    with StreamIndexWriter(tmp_path) as index:
        index.publish_batch("run-1", [partition(0)])
        assert coordinator.initialize_transaction(1, None, span) == span
        coordinator.success(1)
        assert coordinator.is_ready(2)
        assert coordinator.initialize_transaction(2, span, None) == [index.head.stream, 0, 1]


def test_all_that_is_wrong_is_told_at_once(tmp_path):
    with pytest.raises(TopologyError) as refusal:
        SparkStreamSpout(load, "a interval", mode="most", every=" ", available_now=1, ahead=0, rows=0)
    told = "\n".join(refusal.value.problems)
    for words in ("mode=", "every=", "available_now=", "ahead=", "SparkStreamSpout: rows=", "[a interval]"):
        assert words in told
    with pytest.raises(TopologyError, match="exclude each other"):
        SparkStreamSpout(load, "n bigint", every="1 second", available_now=True)
    with pytest.raises(TopologyError, match=r"ahead= takes a number from 2") as refusal:
        SparkTridentSpout(load, "n bigint", "here", ahead=1)
    assert "folder= takes an absolute path, not 'here'" in "\n".join(refusal.value.problems)
    assert SparkTridentSpout(load, "n bigint, word string", str(tmp_path)).outputs == ["n", "word"]
