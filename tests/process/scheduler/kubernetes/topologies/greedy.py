"""One task takes more memory than it asked for, as often as the configuration says; the others do not notice."""

from __future__ import annotations

import os

from counted import Numbers, Pass, Written

from ardea import Bolt, Grouping, Topology


class Greedy(Bolt):
    """So many lives of its process are killed for their memory."""

    outputs = ["number"]

    def initialize(self, config, context):
        self.dies = int(os.environ["ARDEA_LIFE"]) <= config["greedy.deaths"]
        self.seen = 0

    def process(self, tup):
        self.seen += 1
        if self.dies and self.seen > 300:
            self.hoard = [os.urandom(16 << 20) for _ in range(100)]
        self.emit(list(tup.values))


class Counted(Topology):
    numbers = Numbers.spec()
    middle = Pass.spec(inputs=[numbers])
    greedy = Greedy.spec(inputs=[middle])
    written = Written.spec(inputs={greedy: Grouping.fields("number")}, par=2)

    config = {"topology.max.spout.pending": 200, "topology.message.timeout.secs": 20, "topology.stmgrs": 2}
