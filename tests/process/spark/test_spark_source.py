"""The data source `ardea`, with a real Spark on both sides of a topology."""

from __future__ import annotations

from pathlib import Path

import pytest

from ardea.spark import session
from tests.process.engine.running import Running
from tests.process.spark.test_spark_jobs import LONG

pytestmark = [pytest.mark.thorough, pytest.mark.cluster]

TABLES = str(Path(__file__).parent / "topologies" / "tables.py")
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "512m",
}
OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@pytest.fixture
def spark(tmp_path, monkeypatch, deadline, leaks):
    for name in ("PYSPARK_PYTHON", "PYTHONPATH", "SPARK_LOCAL_IP"):
        monkeypatch.setenv(name, "")  # so that they are as before when the test has ended
        monkeypatch.delenv(name)
    from ardea.spark.source import ArdeaSource

    places = {"spark.local.dir": str(tmp_path / "scratch"), "spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
    java = {"spark.driver.extraJavaOptions": f"{OPTIONS} -Djava.io.tmpdir={tmp_path}"}
    spark = session.open_session("source", SETTINGS | places | java)
    spark.dataSource.register(ArdeaSource)
    yield spark
    spark.stop()
    session.end_jvm()
    workers = lambda: [line for line in leaks.processes().values() if "pyspark.daemon" in line]  # noqa: E731
    deadline(lambda: not workers(), "Spark's Python workers have followed the JVM")


def rows_of(frame):
    return sorted(repr(row) for row in frame.collect())


def stream(frame, path, checkpoint):
    """All that is there, as one query."""
    writer = frame.writeStream.format("ardea").option("checkpointLocation", str(checkpoint)).option("query", "q")
    query = writer.trigger(availableNow=True).start(str(path))
    query.awaitTermination()


def test_spark_writes_a_topology_copies_spark_reads(spark, tmp_path, monkeypatch):
    monkeypatch.setenv("ARDEA_TEST_TABLES", str(tmp_path))
    given, result, checkpoint = tmp_path / "in", tmp_path / "out", tmp_path / "checkpoint"
    frame = spark.range(3000, numPartitions=3).selectExpr(
        "id as n",
        "cast(id / 2 as decimal(10,2)) as price",
        "timestamp'2024-05-01 10:00:00' + make_dt_interval(0, int(id)) as at",
        "if(id % 7 = 0, null, array('a', string(id))) as tags",
        "named_struct('lat', id / 4, 'counts', map('k', int(id))) as place",
    )
    save = lambda part, mode: part.write.format("ardea").mode(mode).save(str(given))  # noqa: E731
    save(frame.where("n < 10"), "append")
    save(frame.where("n < 1000"), "overwrite")
    save(frame.where("n >= 1000 and n < 2000"), "append")
    frame.where("n >= 2000").coalesce(1).write.parquet(str(tmp_path / "source"))
    source = spark.readStream.schema(frame.schema).parquet(str(tmp_path / "source"))
    stream(source, given, checkpoint)
    for file in (checkpoint / "commits").glob("*0*"):
        file.unlink()
    stream(source, given, checkpoint)  # the same micro-batch once more
    expected = rows_of(frame)
    assert rows_of(spark.read.format("ardea").load(str(given))) == expected

    with Running(f"{TABLES}:Copy", tmp_path) as topology:
        topology.finish(LONG)
    copied = spark.read.format("ardea").load(str(result))
    assert copied.schema.simpleString() == frame.schema.simpleString()
    assert rows_of(copied) == expected

    following = spark.readStream.format("ardea").load(str(result))
    stream(following, tmp_path / "again", tmp_path / "checkpoint2")
    assert rows_of(spark.read.format("ardea").load(str(tmp_path / "again"))) == expected
