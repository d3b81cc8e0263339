"""A quarter of a gigabyte in one partition, a hundredth of it in another."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

from jobs import LEAN

from ardea import Bolt, Grouping, Topology
from ardea.spark import SparkSpout

ROWS, WIDTH = 250_000, 1000


def skewed(spark):
    from pyspark.sql.functions import expr

    rows = spark.range(0, 2 * ROWS, numPartitions=2).where(f"id >= {ROWS} or id % 100 = 0")
    return rows.select(expr("id as n"), expr(f"repeat('x', {WIDTH}) as word"))


class Sum(Bolt):
    def initialize(self, config, context):
        self.file = Path(config["test.out"]) / f"{context.this_component_id}-{context.this_task_index}.json"
        self.seen = bytearray(2 * ROWS)
        self.tasks = Counter()
        self.first = None

    def process_batch(self, rows):
        self.first = self.first or time.time()
        self.tasks[rows[0].task] += len(rows)
        for tup in rows:
            self.seen[tup[0]] = len(tup[1]) == WIDTH

    def end_of_input(self):
        self.file.write_text(json.dumps([self.first, sum(self.seen), sorted(self.tasks.values())]))


class Skewed(Topology):
    rows = SparkSpout(skewed, "n bigint, word string", storage="serve").spec(par=2)
    sum = Sum.spec(inputs={rows: Grouping.GLOBAL})
    config = LEAN
