"""Folders of format `ardea` without Spark: types, schema, a sink and what it leaves."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import ArrayType, DateType, LongType, MapType, StructField, StructType

from ardea import Grouping, Topology, TopologyError, UserError
from ardea.errors import ClusterError
from ardea.spark import ArdeaSink, ArdeaSpout, table
from ardea.spark.index import IndexWriter, StreamIndexWriter
from ardea.spark.reading import SharedFiles, batches_of
from ardea.spark.schema import parse_schema, type_of
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.spark.table import arrow_schema, hold, published, read_schema, write_schema
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from tests.simulation.spark.test_spout import Task


def test_types_are_those_that_spark_makes():
    columns = parse_schema(
        "a tinyint, b smallint, c int, d bigint, e float, f double, g string, h binary, i boolean, j date, k timestamp,"
        "l timestamp_ntz, m decimal(12,3), n array<array<int>>, o map<string, struct<x: int, y: array<decimal(3,1)>>>"
    )
    expected = [
        pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.bool_(),
        pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(12, 3),
        pa.list_(pa.field("element", pa.list_(pa.field("element", pa.int32())))),
        pa.map_(
            pa.string(),
            pa.struct([("x", pa.int32()), ("y", pa.list_(pa.field("element", pa.decimal128(3, 1))))]),
        ),
    ]  # fmt: skip
    assert arrow_schema(columns).types == expected
    assert arrow_schema(columns).names == list("abcdefghijklmno")


def test_a_folder_keeps_its_columns(tmp_path):
    columns = parse_schema("n bigint, `odd ``name` array<string>")
    with pytest.raises(UserError, match=r"has no schema\.ddl: nothing was written there"):
        read_schema(tmp_path)
    write_schema(tmp_path / "new", columns)
    write_schema(tmp_path / "new", columns)
    assert read_schema(tmp_path / "new") == columns
    with pytest.raises(UserError, match="not `n` int"):
        write_schema(tmp_path / "new", parse_schema("n int"))


def test_fields_may_have_any_name(tmp_path):
    columns = parse_schema("s array<struct<`a-b`: int, `c d`: struct<`e:,>``f`: map<string, int>>>>")
    write_schema(tmp_path, columns)
    assert read_schema(tmp_path) == columns
    inner = pa.struct([("e:,>`f", pa.map_(pa.string(), pa.int32()))])
    expected = pa.list_(pa.field("element", pa.struct([("a-b", pa.int32()), ("c d", inner)])))
    assert arrow_schema(columns).types == [expected]
    spark = StructType([StructField("s", ArrayType(StructType([StructField("a-b", MapType(DateType(), LongType()))])))])
    assert parse_schema(f"s {type_of(spark.fields[0].dataType)}") == parse_schema(
        "s array<struct<`a-b` map<date, bigint>>>"
    )


def test_a_folder_of_a_former_version_keeps_its_columns(tmp_path):
    (tmp_path / "schema.ddl").write_text("`s` struct<a:int>")
    write_schema(tmp_path, parse_schema("s struct<a: int>"))
    assert (tmp_path / "schema.ddl").read_text() == "`s` struct<`a`:int>"


def copying(folder, rows):
    class Copying(Topology):
        words = RowsSpout.of(["word", "n"], rows).spec()
        sink = ArdeaSink(str(folder), "n bigint, word string", rows=4).spec(
            inputs={words: Grouping.fields("word")}, par=2
        )

    return run(Copying)


def left(folder):
    found = []
    for name, partitions in published(folder).items():
        for partition in partitions:
            for _, batch in batches_of(SharedFiles(folder / name), partition, 0):
                found += batch.to_pylist()
    return found


def test_a_sink_publishes_each_row_and_goes_on_in_the_next_run(tmp_path):
    rows = [(f"word {n % 7}", n) for n in range(50)]
    for runs in (1, 2):
        assert copying(tmp_path / "out", rows).state == "SUCCEEDED"
        found = sorted((row["n"], row["word"]) for row in left(tmp_path / "out"))
        assert found == sorted((n, word) for word, n in rows * runs)
    for partitions in published(tmp_path / "out").values():
        assert [each.number for each in partitions] == [*range(len(partitions))]
    assert sorted(published(tmp_path / "out")) == ["sink-0", "sink-1"]


def test_a_sink_waits_for_who_writes_there_and_then_fails(tmp_path, monkeypatch):
    folder = tmp_path / "out" / "sink-1"
    waits = []
    monkeypatch.setattr(table, "_PATIENTLY", table._PATIENTLY.copy(sleep=waits.append))
    with hold(folder):
        result = copying(tmp_path / "out", [("word", 1)])
    assert result.state == "FAILED"
    assert f"another process writes into {folder}" in result.reason
    assert sum(waits) == pytest.approx(10)
    zombie = hold(folder)
    monkeypatch.setattr(table, "_PATIENTLY", table._PATIENTLY.copy(sleep=lambda _: zombie.close()))
    assert copying(tmp_path / "out", [("word", 1)]).state == "SUCCEEDED"
    assert zombie.closed
    assert left(tmp_path / "out") == [{"n": 1, "word": "word"}]


def test_a_row_that_is_not_published_is_not_acked(tmp_path, monkeypatch):
    monkeypatch.setattr(IndexWriter, "publish", lambda *_: False)
    result = copying(tmp_path / "out", [("word", 1)])
    assert result.state == "FAILED"
    assert "another process has written file 0" in result.reason


@pytest.mark.parametrize("value", ["no number", 2**63])
def test_a_value_of_another_type_fails_the_topology(tmp_path, value):
    result = copying(tmp_path / "out", [("word", 1), ("word", value)])
    assert result.state == "FAILED"
    assert f"column n of {tmp_path / 'out'} takes no such value: " in result.reason


def test_a_spout_compares_columns_and_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "in"
    with pytest.raises(UserError, match="nothing was written there"):
        Task(ArdeaSpout(str(folder), "n bigint"))
    write_schema(folder, parse_schema("n bigint"))
    with pytest.raises(UserError, match="has other columns"):
        Task(ArdeaSpout(str(folder), "n int"))
    task = Task(ArdeaSpout(str(folder), "n bigint"))
    task.exhaust()
    assert task.finished
    task = Task(ArdeaSpout(str(folder), "n bigint", follow=True))
    task.exhaust()
    assert not task.finished


def test_a_spout_refuses_a_folder_that_a_sink_has_written(tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    assert copying(tmp_path / "out", [("word", 1), ("other", 2)]).state == "SUCCEEDED"
    with pytest.raises(UserError, match=r"has rows of a sink \(sink-0, sink-1\), and ArdeaSpout reads only what Spark"):
        Task(ArdeaSpout(str(tmp_path / "out"), "n bigint, word string"))


@pytest.fixture
def commit(tmp_path, monkeypatch):
    """Commits a partition, as Spark does, of one batch a row: its rows are the commit's number times ten and on."""
    monkeypatch.setenv("ARDEA_FOLDER", str(tmp_path / "container-1"))
    folder = tmp_path / "in"
    write_schema(folder, parse_schema("n bigint"))
    with StreamIndexWriter(folder) as index:

        def commit(count=2):
            number = index.next_batch
            run = Run(Folder(str(folder)), f"run-{number}", 1, frozenset())
            (folder / run.name).mkdir()
            rows = [pa.record_batch({"n": pa.array([number * 10 + more], pa.int64())}) for more in range(count)]
            index.publish_batch(run.name, [write_partition(run, 0, 0, rows, tmp_path)])

        yield SimpleNamespace(commit=commit, folder=folder, index=index)


def test_a_spout_that_begins_before_its_folder_compares_columns_when_there_are_any(commit):
    shutil.rmtree(commit.folder)
    task = Task(ArdeaSpout(str(commit.folder), "a string, b int", follow=True))
    assert task.exhaust() == []
    write_schema(commit.folder, parse_schema("b int, a string"))
    with StreamIndexWriter(commit.folder) as index:
        index.publish_batch("run-0", [])
        with pytest.raises(UserError, match="has other columns than schema= declares: `b` int, `a` string, not `a` "):
            task.exhaust()


def test_a_spout_that_follows_reads_what_is_committed_later(commit):
    commit.commit()
    once, task = (Task(ArdeaSpout(str(commit.folder), "n bigint", follow=follow)) for follow in (False, True))
    assert task.exhaust() == [0, 1]
    commit.commit()
    commit.commit()
    assert task.exhaust() == [0, 1, 10, 11, 20, 21]
    assert not task.finished
    assert once.exhaust() == [0, 1]
    assert once.finished


def test_a_task_that_has_finished_reads_what_an_update_brings_it(commit):
    """Of two tasks, one is in a long partition; the other one has finished, and gets what is after that."""
    for rows in (10, 1, 1, 1, 1):
        commit.commit(rows)

    class Copies(Topology):
        numbers = ArdeaSpout(str(commit.folder), "n bigint").spec(par=2)
        sink = CollectBolt.spec(inputs=[numbers])

    with Cluster(Copies, containers=2, cost={"numbers": 0.1}) as cluster:
        cluster.advance(0.6)
        assert cluster.updated(cluster.update_request(parallelism={"numbers": 3})).step == "done"
        assert len(cluster.record.inputs("sink")) < 10
        cluster.run_until(lambda: cluster.over, 120)
        assert cluster.state == "SUCCEEDED"
        assert {n for (n,) in cluster.record.inputs("sink")} == {*range(10), 10, 20, 30, 40}


def test_a_new_life_does_not_go_on_in_what_has_overwritten_the_folder(commit):
    commit.commit()
    former = Task(ArdeaSpout(str(commit.folder), "n bigint", follow=True))
    former.exhaust()
    former.task.ack_batch(former.ids[0])
    commit.index.replace_all("run-x", [])
    commit.commit()
    with pytest.raises(UserError, match="was overwritten while it was read"):
        Task(ArdeaSpout(str(commit.folder), "n bigint", follow=True)).exhaust()


def test_a_folder_that_is_removed_under_a_spout_is_no_end(commit):
    commit.commit()
    task = Task(ArdeaSpout(str(commit.folder), "n bigint"))
    task.task.next_tuple()
    shutil.rmtree(commit.folder)
    with pytest.raises(ClusterError, match="is gone"):
        task.exhaust()
    assert not task.finished


def test_folders_are_absolute():
    for wrong in ("here", Path("/there")):
        with pytest.raises(TopologyError, match="absolute path"):
            ArdeaSpout(wrong, "n bigint")
        with pytest.raises(TopologyError, match="absolute path"):
            ArdeaSink(wrong, "n bigint")
    with pytest.raises(TopologyError, match="both have to be above 0"):
        ArdeaSink("/there", "n bigint", rows=0)
