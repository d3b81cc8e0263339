"""A stream of files, which a test adds one after the other."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from jobs import LEAN

from ardea import Bolt, Grouping, Topology
from ardea.spark import SparkStreamSpout, SparkTridentSpout
from ardea.trident import Count, SqliteState, TridentTopology

ROWS = 400  # of each file


def numbers(spark):
    lines = (
        spark.readStream.schema("n bigint").option("maxFilesPerTrigger", 1).json(spark.conf.get("spark.test.source"))
    )
    return lines.repartition(3)


class Noted(Bolt):
    """Appends each number to a file, and says so before it acks; waits while the file ``hold`` is there."""

    def initialize(self, config, context):
        out = Path(config["test.out"])
        self.hold = out / "hold"
        self.file = (out / f"noted-{context.this_task_index}.jsonl").open("a")

    def process_batch(self, rows):
        while self.hold.exists():
            time.sleep(0.02)
        self.file.write("".join(json.dumps(tup[0]) + "\n" for tup in rows))
        self.file.flush()


class Followed(Topology):
    rows = SparkStreamSpout(numbers, "n bigint", rows=50, ahead=2, storage="serve").spec(par=2)
    noted = Noted.spec(inputs={rows: Grouping.GLOBAL})
    config = LEAN


def exact(*, ending):
    """Each number is counted in a database, which the setting of the environment names."""
    folder = Path(os.environ.get("ARDEA_TEST_TRIDENT", "/nowhere"))
    topology = TridentTopology("Exact")
    spout = SparkTridentSpout(numbers, "n bigint", str(folder / "stream"), rows=50, ahead=2, available_now=ending)
    counted = topology.new_stream("numbers", spout).parallelism_hint(2).group_by("n")
    counted.persistent_aggregate(SqliteState.transactional(folder / "counts.sqlite"), Count(), "count")
    topology.set_config(LEAN)
    return topology.build()


Exact = exact(ending=False)
Ending = exact(ending=True)
