"""Numbers that must arrive at least once, whoever dies."""

from __future__ import annotations

import time
from pathlib import Path

from leaving import LeavingBolt, LeavingSpout

from ardea import Grouping, Topology

KEPT_EVERY = 200


class Numbers(LeavingSpout):
    """Counts from where the acks without a gap end, which a file keeps over its lives; until told to end."""

    outputs = ["source", "number"]

    def begin(self):
        self.file = Path(self.config["test.out"]) / f"position-{self.index}"
        self.low = self.kept = int(self.file.read_text()) if self.file.exists() else 0
        self.next = self.low
        self.acked = set()

    def next_tuple(self):
        if self.flag("enough"):
            self.finish()
            return
        self.emit([self.index, self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked.add(tup_id)
        while self.low in self.acked:
            self.acked.remove(self.low)
            self.low += 1
        if self.low >= self.kept + KEPT_EVERY:
            self.kept = self.low
            new = self.file.with_suffix(".new")
            new.write_text(str(self.low))
            new.rename(self.file)

    def close(self):
        self.leave({"end": self.next, "acked": self.low})


class Pass(LeavingBolt):
    """The file ``began-INDEX`` has when its present life processed its first row."""

    outputs = ["source", "number"]

    def begin(self):
        self.rows = 0

    def process(self, tup):
        if not self.rows:
            (Path(self.config["test.out"]) / f"began-{self.index}").write_text(str(time.monotonic()))
        self.rows += 1
        self.emit(list(tup.values))


class Arrived(LeavingBolt):
    """Takes its time, so that the spouts always have as many open trees as they may; leaves what came."""

    def begin(self):
        self.numbers = {}
        self.rows = 0

    def process(self, tup):
        source, number = tup.values
        self.numbers.setdefault(source, set()).add(number)
        self.rows += 1
        if not self.rows % 10:
            time.sleep(0.002)

    def end_of_input(self):
        sources = sorted(self.numbers)
        self.leave(
            {
                "rows": self.rows,
                "different": {source: len(self.numbers[source]) for source in sources},
                "ends": {source: max(self.numbers[source]) + 1 for source in sources},
            }
        )


class Survivors(Topology):
    """In each container a spout task and a task of the bolt; what arrives is kept in one place."""

    numbers = Numbers.spec(par=2)
    through = Pass.spec(inputs=[numbers], par=2)
    arrived = Arrived.spec(inputs={through: Grouping.GLOBAL})

    config = {
        "topology.stmgrs": 2,
        "topology.max.spout.pending": 500,
        "topology.message.timeout.secs": 60,
        "heron.metrics.export.interval.sec": 0.2,
    }
