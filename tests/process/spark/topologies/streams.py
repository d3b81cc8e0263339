"""A stream of files, which a test adds one after the other."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from jobs import LEAN

from ardea import Bolt, Grouping, Topology, TwoPhaseSink
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


class Outside(TwoPhaseSink):
    """Writes each number into a database, together with its mark."""

    def initialize(self, config, context):
        self.path = Path(config["test.out"]) / "outside.sqlite"

    def commit(self, mark, rows):
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute("CREATE TABLE IF NOT EXISTS marks (owner TEXT PRIMARY KEY, number INTEGER)")
            database.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
            found = database.execute("SELECT number FROM marks WHERE owner = ?", [mark.owner]).fetchone()
            if found is None or found[0] < mark.number:
                database.execute("REPLACE INTO marks VALUES (?, ?)", [mark.owner, mark.number])
                database.executemany("INSERT INTO numbers VALUES (?)", rows)


class Once(Topology):
    rows = SparkStreamSpout(numbers, "n bigint", rows=50, ahead=2, storage="serve").spec(par=2)
    outside = Outside.spec(inputs={rows: Grouping.GLOBAL})
    config = {
        **LEAN,
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 0.5,
    }


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
