"""A quarter of a gigabyte in one partition, a hundredth of it in another."""

from __future__ import annotations

import json
import time
from pathlib import Path

from jobs import LEAN

from ardea import Bolt, Grouping, Topology
from ardea.spark import SparkSpout

ROWS, WIDTH = 250_000, 1000


def skewed(spark):
    from pyspark.sql.functions import expr

    small = ROWS // 100
    rows = spark.range(0, small, numPartitions=1).union(spark.range(small, small + ROWS, numPartitions=1))
    return rows.select(expr("id as n"), expr(f"repeat('x', {WIDTH}) as word"))


class Sum(Bolt):
    def initialize(self, config, context):
        self.file = Path(config["test.out"]) / f"{context.this_component_id}-{context.this_task_index}.json"
        self.seen = bytearray(ROWS + ROWS // 100)
        self.first = None

    def process_batch(self, rows):
        self.first = self.first or time.time()
        for tup in rows:
            self.seen[tup[0]] = len(tup[1]) == WIDTH

    def end_of_input(self):
        self.file.write_text(json.dumps([self.first, sum(self.seen)]))


class Skewed(Topology):
    rows = SparkSpout(skewed, "n bigint, word string", storage="serve").spec(par=2)
    sum = Sum.spec(inputs={rows: Grouping.GLOBAL})
    config = LEAN
