"""A slow bolt behind a quick one that passes everything on, and a spout that never waits."""

from __future__ import annotations

import time

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology


class Endless(LeavingSpout):
    """A hundred rows a call, as fast as it may."""

    outputs = ["n"]

    def begin(self):
        self.emitted = 0

    def next_tuple(self):
        for _ in range(100):
            self.emitted += 1
            self.emit([self.emitted], tup_id=self.emitted)


class Quick(LeavingBolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])


class Slow(LeavingBolt):
    """``test.seconds`` for each."""

    def begin(self):
        self.seconds = self.config["test.seconds"]

    def process(self, tup):
        time.sleep(self.seconds)


class Behind(Topology):
    endless = Endless.spec()
    quick = Quick.spec(inputs=[endless])
    slow = Slow.spec(inputs=[quick])
