"""Spark jobs for the tests: what each is, and bolts that leave what came."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from ardea import Bolt, Grouping, KeyedState, Topology
from ardea.spark import SparkSpout

LEAN = {
    "spark.master": "local[2]",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": 2,
    "heron.metrics.export.interval.sec": 0.2,
}
TYPES = """
    n bigint, tiny tinyint, real float, price decimal(10,2), word string, raw binary, flag boolean,
    at timestamp, local timestamp_ntz, day date, tags array<string>, place struct<lat: double, deep: array<int>>,
    counts map<string, bigint>
"""
PARTITIONS = 6
ROWS = 2000  # of each partition of the gated job


class Arrived(Bolt):
    """Leaves the ``repr`` of each different row; ``test.slow`` is a pause each hundred tuples, in seconds.

    After half of the gated rows it waits for the file ``test.hold``, if there is one to wait for.
    """

    def initialize(self, config, context):
        self.pause = config.get("test.slow", 0)
        self.hold = Path(config.get("test.hold", "/"))
        self.file = Path(config["test.out"]) / f"{context.this_component_id}-{context.this_task_index}.json"
        self.rows = set()
        self.count = 0

    def process(self, tup):
        self.rows.add(repr(tup.values))
        self.count += 1
        if self.pause and self.count % 100 == 0:
            time.sleep(self.pause)
        while self.count > PARTITIONS * ROWS // 2 and not self.hold.exists():
            time.sleep(0.05)

    def end_of_input(self):
        new = self.file.with_suffix(".new")
        new.write_text(json.dumps(sorted(self.rows)))
        new.rename(self.file)


class ArrivedInBatches(Arrived):
    def process_batch(self, rows):
        for tup in rows:
            self.process(tup)


class ArrivedInColumns(Arrived):
    """Leaves each word with the task of the spout that it came from."""

    def process_columns(self, columns):
        self.rows.update(repr((word, columns.task)) for word in columns["word"].to_pylist())


def every_type(spark):
    """Nine rows and one of nulls in seven partitions, some of them empty; the nine again, from other spout tasks."""
    from pyspark.sql.functions import col, udf

    numbers = spark.range(10, numPartitions=1).repartitionByRange(3, "id")
    shout = udf(shouted, "string")
    rows = numbers.where("id < 9").select(
        col("id").alias("n"),
        col("id").cast("tinyint").alias("tiny"),
        (col("id") / 2).cast("float").alias("real"),
        (col("id") + 0.5).cast("decimal(10,2)").alias("price"),
        shout("id").alias("word"),
        col("id").cast("string").cast("binary").alias("raw"),
        (col("id") % 2 == 0).alias("flag"),
    )
    rows = rows.selectExpr(
        "*",
        "timestamp'2024-05-01 10:00:00+02:00' + make_dt_interval(0, int(n)) as at",
        "timestamp_ntz'2024-05-01 10:00:00' as local",
        "date_add(date'2024-05-01', int(n)) as day",
        "array(word, null) as tags",
        "named_struct('lat', n / 2D, 'deep', array(int(n))) as place",
        "map('a', n) as counts",
        "'not declared' as beside",
    )
    nulls = [f"cast(null as {field.dataType.simpleString()}) as {field.name}" for field in rows.schema]
    return rows.union(spark.range(3, numPartitions=4).where("id = 2").selectExpr(*nulls)).union(rows)


def shouted(number):
    """Runs in Spark's workers, which import this file."""
    return f"number {number}!"


def chosen(spark):
    """What the setting ``spark.test.case`` names."""
    match spark.conf.get("spark.test.case"):
        case "empty":
            return spark.range(0).selectExpr("id as n")
        case "misspelt":
            return spark.range(10).selectExpr("idd as n")
        case "undeclared":
            return spark.range(10).selectExpr("string(id) as n")
        case "full":  # the file of each attempt of the task of partition 1 is on a device that is full
            (run,) = Path(spark.conf.get("spark.local.dir")).parent.glob("run-*")
            for attempt in range(4):
                (run / f"part-00001-{attempt}-0.arrow").symlink_to("/dev/full")
            return spark.range(0, 10_000, numPartitions=2).selectExpr("id as n")
        case _:  # all partitions but the last are fine
            return spark.range(0, 1000, numPartitions=4).selectExpr("id + 1 div (999 - id) as n")


def gated(spark):
    """Rows of partitions 0 and 1 come at once, those of the others when the file that the setting names is there.

    With the setting ``spark.test.closed`` no row comes before.
    """
    from pyspark.sql.functions import udf

    gate = spark.conf.get("spark.test.gate")
    free = 0 if spark.conf.get("spark.test.closed", None) else 2 * ROWS

    def passed(number):
        while number >= free and not os.path.exists(gate):  # noqa: PTH110
            time.sleep(0.05)
        return number

    frame = spark.range(0, PARTITIONS * ROWS, numPartitions=PARTITIONS)
    return frame.select(udf(passed, "bigint")("id").alias("n"))


class EveryType(Topology):
    rows = SparkSpout(every_type, TYPES, rows=2).spec(par=3)
    singly = Arrived.spec(inputs=[rows], par=2)
    batches = ArrivedInBatches.spec(inputs={rows: Grouping.fields("word")}, par=2)
    columns = ArrivedInColumns.spec(inputs={rows: Grouping.fields("word")}, par=2)
    config = LEAN


class Chosen(Topology):
    rows = SparkSpout(chosen, "n bigint").spec()
    arrived = Arrived.spec(inputs=[rows])
    config = LEAN


class Gated(Topology):
    """``test.slow`` keeps many rows open."""

    rows = SparkSpout(gated, "n bigint", rows=500).spec(par=2)
    arrived = Arrived.spec(inputs={rows: Grouping.GLOBAL})
    config = LEAN | {"topology.max.spout.pending": 1000}


class Counted(Arrived):
    """Leaves the rows that were not counted once."""

    counts = KeyedState(default=0)

    def process(self, tup):
        super().process(tup)
        self.counts[tup["n"]] += 1

    def end_of_input(self):
        wrong = [(n, count) for n, count in self.counts.items() if count != 1]
        self.file.write_text(json.dumps([len(self.counts), wrong]))


class GatedOnce(Topology):
    """Spark may not be run again: another run may give other rows."""

    rows = SparkSpout(gated, "n bigint", rows=500).spec(par=2)
    counted = Counted.spec(inputs={rows: Grouping.fields("n")})
    config = LEAN | {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 0.5,
    }


class Deterministic(Gated):
    rows = SparkSpout(gated, "n bigint", rows=500, deterministic=True).spec(par=2)


class AllOrNothing(Gated):
    rows = SparkSpout(gated, "n bigint", rows=500, start="complete").spec(par=2)
