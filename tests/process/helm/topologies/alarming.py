"""A topology that works until a flag gives an alert its reason."""

from __future__ import annotations

from pathlib import Path

from ardea import Bolt, Spout, Topology


class Numbers(Spout):
    """Counts; until ``enough``."""

    outputs = ["number"]

    def initialize(self, config, context):
        self.number, self.enough = 0, Path(config["test.out"]) / "enough"

    def next_tuple(self):
        if self.enough.exists():
            self.finish()
            return
        self.emit([self.number], tup_id=self.number)
        self.number += 1


class Works(Bolt):
    """Acks; with ``hold`` it keeps what comes, with ``refuse`` it fails the same numbers each time."""

    auto_ack = False

    def initialize(self, config, context):
        out = Path(config["test.out"])
        self.hold, self.refuse = out / "hold", out / "refuse"

    def process(self, tup):
        if self.hold.exists():
            return
        if tup["number"] % 100 == 0 and self.refuse.exists():
            self.fail(tup)
        else:
            self.ack(tup)


class Alarming(Topology):
    numbers = Numbers.spec()
    works = Works.spec(inputs=[numbers])
    config = {
        "topology.stmgrs": 2,
        "topology.max.spout.pending": 50,
        "topology.message.timeout.secs": 300,
        "topology.max.tuple.replays": 1,
    }
