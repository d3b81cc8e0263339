"""Watermarks of Spark's rows: of a folder on the real engine, and when a task of a job or stream is not idle."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from ardea import Timestamps, Topology, TopologyError
from ardea.spark import ArdeaSpout, SparkSpout, SparkStreamSpout, SparkTridentSpout
from ardea.spark.index import StreamIndexWriter
from ardea.spark.schema import parse_schema
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.spark.table import write_schema
from ardea.spark.table_tasks import TableSpout
from ardea.testing import Cluster, CollectBolt
from ardea.watermarks import NEVER, SourceTime, StampCounts
from tests.simulation.spark.test_spout import Task, load

AT = Timestamps("n", lateness=2.0, idle_after=5.0)


@pytest.fixture
def stage(tmp_path, monkeypatch):
    """The folder of a job whose driver is there; nothing is published."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "spark" / "s"
    (folder / "progress").mkdir(parents=True)
    with StreamIndexWriter(folder):
        yield folder


def asked(spout):
    """A task that was asked for rows, and what it knows of time."""
    task = Task(spout)
    task.task._time = SourceTime(spout._timestamps, lambda: 0.0, StampCounts())
    task.task.next_tuple()
    return task, task.task._time


def test_a_job_is_never_idle_before_it_has_finished(stage):
    task, time = asked(SparkSpout(load, "n bigint", timestamps=AT))
    time.emits("", [7])
    task.task.next_tuple()
    time.waited(100.0)
    assert (time.watermark, time.idle) == (5.0, False)


def test_a_stream_is_idle_while_its_driver_is_there(stage):
    task, time = asked(SparkStreamSpout(load, "n bigint", timestamps=AT))
    time.waited(4.0)
    assert not time.idle
    shutil.rmtree(stage)
    task.task.next_tuple()
    time.waited(100.0)
    assert (time.watermark, time.idle) == (NEVER, False)
    stage.mkdir()
    task.task.next_tuple()
    time.waited(1.0)
    time.waited(5.0)
    assert time.idle


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_the_rows_of_a_folder_have_a_watermark(tmp_path, monkeypatch, mode):
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "table"
    write_schema(folder, parse_schema("n bigint"))
    staged = Run(Folder(str(folder)), "run-1", 1, frozenset())
    (folder / "run-1").mkdir()
    with StreamIndexWriter(folder) as index:
        rows = [pa.record_batch({"n": pa.array(some, pa.int64())}) for some in (range(30), range(30, 50))]
        index.publish_batch("run-1", [write_partition(staged, 0, 0, rows, tmp_path)])

    class Reading(Topology):
        rows = ArdeaSpout(str(folder), "n bigint", follow=True, timestamps=AT).spec()
        kept = CollectBolt.spec(inputs=[rows])

    with Cluster(Reading, config={"topology.reliability.mode": mode}) as cluster:
        cluster.advance(0.01)
        cluster.run_until(lambda: cluster.task("kept-0", CollectBolt).watermark == 47.0, timeout=5)
        time = cluster.task("rows-0", TableSpout)._time
        cluster.run_until(lambda: time.idle, timeout=10)


def test_the_stamp_is_a_column_and_trident_takes_none():
    class Jobs(Topology):
        rows = SparkSpout(load, "n bigint", timestamps=Timestamps("when")).spec()
        kept = CollectBolt.spec(inputs=[rows])

    with pytest.raises(TopologyError, match="stand in the field 'when', which none of its streams has"):
        Jobs.plan({})
    with pytest.raises(TopologyError, match="takes no timestamps="):
        SparkTridentSpout(load, "n bigint", "/folder", timestamps=AT)
