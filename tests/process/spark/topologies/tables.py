"""From a folder that Spark writes to a folder that Spark reads."""

from __future__ import annotations

import os
from pathlib import Path

from ardea import Bolt, Grouping, Topology
from ardea.spark import ArdeaSink, ArdeaSpout

FOLDER = Path(os.environ.get("ARDEA_TEST_TABLES", "/nowhere"))
COLUMNS = (
    "n bigint, price decimal(10,2), at timestamp, tags array<string>, place struct<lat:double,counts:map<string,int>>"
)


class Same(Bolt):
    outputs = ["n", "price", "at", "tags", "place"]

    def process(self, tup):
        self.emit(tup.values)


class Copy(Topology):
    rows = ArdeaSpout(str(FOLDER / "in"), COLUMNS).spec(par=2)
    same = Same.spec(inputs=[rows], par=2)
    sink = ArdeaSink(str(FOLDER / "out"), COLUMNS, rows=500, every=0.5).spec(inputs={same: Grouping.fields("n")}, par=2)
    config = {"heron.metrics.export.interval.sec": 0.2}
