"""A bolt that some rows kill, with and without the process."""

from __future__ import annotations

import os
import signal

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology

TOTAL = 2000
KILLS, RAISES = 700, 1300


class Numbers(LeavingSpout):
    outputs = ["number"]

    def begin(self):
        self.next = 0
        self.acked = []

    def next_tuple(self):
        if self.next == TOTAL:
            self.finish()
            return
        self.emit([self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked.append(tup_id)

    def close(self):
        self.leave(sorted(self.acked))


class Fragile(LeavingBolt):
    outputs = ["number"]

    def process(self, tup):
        if tup["number"] == KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if tup["number"] == RAISES:
            raise ValueError("poison")
        self.emit(list(tup.values))


class Collects(LeavingBolt):
    def begin(self):
        self.values_seen = []

    def process(self, tup):
        self.values_seen.append(list(tup.values))

    def close(self):
        self.leave(self.values_seen)


class Poison(Topology):
    numbers = Numbers.spec()
    fragile = Fragile.spec(inputs=[numbers])
    passed = Collects.spec(inputs=[fragile])
    letters = Collects.spec(inputs=[numbers["__dead_letter"]])
    config = {"topology.max.tuple.replays": 1, "topology.max.spout.pending": 100, "topology.stmgrs": 2}
