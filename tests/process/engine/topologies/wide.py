"""More output than the queue behind the executor takes at once."""

from __future__ import annotations

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology

TOTAL = 500_000
TEXT = "x" * 1000


class Wide(LeavingSpout):
    outputs = ["number", "text"]

    def begin(self):
        self.next = 0

    def next_tuple(self):
        if self.next == TOTAL:
            self.finish()
            return
        self.emit([self.next, TEXT], tup_id=self.next)
        self.next += 1


class Counts(LeavingBolt):
    def begin(self):
        self.count = 0

    def process(self, tup):
        self.count += 1

    def close(self):
        self.leave(self.count)


class Output(Topology):
    wide = Wide.spec()
    counts = Counts.spec(inputs=[wide])
    config = {"topology.reliability.mode": "ATMOST_ONCE"}  # no verdict wakes the spout either
