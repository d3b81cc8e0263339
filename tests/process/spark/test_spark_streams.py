"""A real streaming query as a spout: whoever dies, every row arrives, and Spark never runs far ahead."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ardea.spark.index import IndexReader
from ardea.spark.progress import write_mark
from ardea.state.records import RunState
from ardea.trident import SqliteState
from tests.process.spark.test_spark_jobs import LONG, running, until_over

pytestmark = pytest.mark.cluster

STREAMS = str(Path(__file__).parent / "topologies" / "streams.py")
ROWS = 400


class Source:
    """A folder of files, each of the next numbers."""

    def __init__(self, folder):
        self.folder, self.files = folder, 0
        folder.mkdir()

    def add(self, files):
        for _ in range(files):
            text = "".join(json.dumps({"n": n}) + "\n" for n in range(self.files * ROWS, (self.files + 1) * ROWS))
            draft = self.folder / f".{self.files}"
            draft.write_text(text)
            draft.rename(self.folder / f"{self.files}.json")
            self.files += 1

    @property
    def numbers(self):
        return set(range(self.files * ROWS))


def noted(topology):
    lines = [line for file in topology.out.glob("noted-*.jsonl") for line in file.read_text().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith("\n")]  # the last one may be under way


def driver_log(topology):
    return "".join(log.read_text() for log in topology.folder.glob("container-*/logs/rows_driver-0.log"))


def followed(topology, name):
    """The folder of the driver, and how to ask how many micro-batches are published there."""
    pattern = f"container-*/spark/{name}/index.jsonl" if name.endswith("-0") else f"spark/{name}/index.jsonl"
    topology.until(lambda: [*topology.folder.glob(pattern)], "there is an index", LONG)
    (file,) = topology.folder.glob(pattern)
    return file.parent, IndexReader(file.parent)


def published(index):
    index.poll()
    return len(index.batches)


def noted_by_spark(folder, kind):
    """The micro-batches that Spark has planned (``offsets``) or noted as done (``commits``)."""
    return [int(file.name) for file in (folder / "checkpoint" / kind).glob("[0-9]*")]


def forget(folder, kind, number):
    """As if the driver had died before Spark noted it."""
    for file in (folder / "checkpoint" / kind).glob(f"*{number}*"):
        file.unlink()


def test_whoever_dies_every_row_arrives(tmp_path):
    source = Source(tmp_path / "source")
    source.add(6)
    hold = tmp_path / "out" / "hold"
    with running("Followed", tmp_path, STREAMS, spark_test_source=str(source.folder)) as topology:
        hold.touch()
        folder, index = followed(topology, "rows_driver-0")
        topology.until(lambda: published(index) == 2, "two micro-batches are published", LONG)
        topology.until(lambda: 2 in noted_by_spark(folder, "offsets"), "Spark has planned the third", LONG)
        topology.returned("rows-0", topology.kill("rows-0"), LONG)
        assert published(index) == 2  # Spark waits for acks
        forget(folder, "commits", 1)
        forget(folder, "offsets", 2)
        life = topology.kill("rows_driver-0")
        hold.unlink()
        topology.returned("rows_driver-0", life, LONG)
        topology.until(lambda: source.numbers <= set(noted(topology)), "all rows of six files are noted", LONG)
        assert "micro-batch 1 is published already" in driver_log(topology)
        source.add(2)
        topology.until(lambda: source.numbers <= set(noted(topology)), "all rows of eight files are noted", LONG)
        stream = index.head.stream
        topology.returned("rows_driver-0", topology.kill("rows_driver-0", signal.SIGTERM), LONG)
        source.add(1)
        topology.until(lambda: source.numbers <= set(noted(topology)), "all rows of nine files are noted", LONG)
        assert index.head.stream == stream
        assert set(noted(topology)) == source.numbers
        topology.until(lambda: published(index) == 0, "all are acked and removed", LONG)
        assert index.head.batches > 3  # a death may make one micro-batch of two files
        told = lambda: (topology.total("batch", "rows_driver"), topology.total("batches_open", "rows_driver"))  # noqa: E731
        topology.until(lambda: told() == (index.head.batches, 0), "how many there were is said", LONG)
        topology.until(lambda: not [*folder.glob("run-*"), *folder.glob("progress/*")], "no file stays", LONG)
        topology.run.stop()
        outcome = until_over(topology)
        assert (outcome.state, outcome.reason) == (RunState.KILLED, "")
        assert "the Spark job failed" not in driver_log(topology)


def outside(topology):
    """The numbers that a two-phase sink has written."""
    try:
        with closing(sqlite3.connect(topology.out / "outside.sqlite")) as database:
            return [number for (number,) in database.execute("SELECT n FROM numbers")]
    except sqlite3.OperationalError:
        return []  # not there yet, or being made


@pytest.mark.thorough
def test_effectively_once_each_row_is_written_once_whoever_dies(tmp_path):
    source = Source(tmp_path / "source")
    source.add(3)
    with running("Once", tmp_path, STREAMS, spark_test_source=str(source.folder)) as topology:
        topology.until(lambda: outside(topology), "something is written", LONG)
        source.add(5)
        for name in ("rows-0", "outside-0", "rows-1"):
            before = len(outside(topology))
            topology.returned(name, topology.kill(name), LONG)
            topology.until(lambda before=before: len(outside(topology)) > before, f"more is written after {name}", LONG)
            source.add(1)
        topology.until(lambda: len(outside(topology)) >= len(source.numbers), "all is written", LONG)
        topology.run.stop()
        assert until_over(topology).state is RunState.KILLED
        assert sorted(outside(topology)) == sorted(source.numbers)


def counts(database):
    try:
        return [*SqliteState.transactional(database).items()]
    except sqlite3.OperationalError:
        return []  # not there yet, or being made


@pytest.mark.thorough
def test_trident_counts_each_row_once_in_this_run_and_the_next(tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_TEST_TRIDENT", str(tmp_path))
    source = Source(tmp_path / "source")
    stream, database = tmp_path / "stream", tmp_path / "counts.sqlite"

    def counted():
        return [(key[0], count) for key, count in counts(database)]

    source.add(6)
    with running("Exact", tmp_path, STREAMS, spark_test_source=str(source.folder)) as topology:
        topology.until(lambda: counted() and noted_by_spark(stream, "commits"), "something is counted and noted", LONG)
        topology.kill("spout-numbers-1")
        life = topology.kill("spout-numbers_driver-0")
        forget(stream, "commits", max(noted_by_spark(stream, "commits")))
        topology.returned("spout-numbers_driver-0", life, LONG)
        index = IndexReader(stream)
        topology.until(lambda: len(counted()) == len(source.numbers), "all are counted", LONG)
        topology.until(lambda: published(index) == 0, "all are committed and removed", LONG)
        topology.until(lambda: topology.total("batch", "$mastercoord-bg0") > 3, "the last one is said", LONG)
        assert index.head.batches > 3  # a death may make one micro-batch of two files
        topology.until(lambda: not [*stream.glob("run-*"), *stream.glob("progress/*")], "no file stays", LONG)
        write_mark(stream / "progress", 0, 1)  # as by who had read the index before
        topology.until(lambda: not [*stream.glob("progress/*")], "nor a late one", LONG)
        topology.run.stop()
        assert until_over(topology).state is RunState.KILLED
    assert sorted(counted()) == [(n, 1) for n in sorted(source.numbers)]
    shutil.rmtree(tmp_path / "out")
    source.add(1)
    with running("Ending", tmp_path, STREAMS, spark_test_source=str(source.folder)) as topology:
        topology.finish(LONG)
    assert sorted(counted()) == [(n, 1) for n in sorted(source.numbers)]
    assert not (stream / "scratch").exists()
