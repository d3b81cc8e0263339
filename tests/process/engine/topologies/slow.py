"""Two slow bolts behind spouts that never wait, and a branch that has nothing to do with them."""

from __future__ import annotations

import time

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology


class Endless(LeavingSpout):
    """Rows of twenty bytes, as fast as it may."""

    outputs = ["text"]

    def begin(self):
        self.emitted = 0

    def next_tuple(self):
        for _ in range(100):
            self.emitted += 1
            self.emit([f"{self.emitted:020}"], tup_id=self.emitted)


class Paced(Endless):
    """``test.pace`` rows a second."""

    def begin(self):
        super().begin()
        self.began = time.monotonic()

    def next_tuple(self):
        if self.emitted < (time.monotonic() - self.began) * self.config["test.pace"]:
            self.emitted += 1
            self.emit([f"{self.emitted:020}"], tup_id=self.emitted)


class Slow(LeavingBolt):
    """A millisecond for each."""

    seconds = 0.001

    def process(self, tup):
        time.sleep(self.seconds)


class Slower(Slow):
    seconds = 0.1


class Quick(Slow):
    seconds = 0.0


class SlowBolts(Topology):
    fast = Endless.spec()
    slow = Slow.spec(inputs=[fast])
    faster = Endless.spec()
    slower = Slower.spec(inputs=[faster])
    paced = Paced.spec()
    quick = Quick.spec(inputs=[paced])

    config = {"topology.stmgrs": 2, "topology.message.timeout.secs": 30}
