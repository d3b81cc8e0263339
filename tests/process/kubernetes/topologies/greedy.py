"""One task takes more memory than it asked for, once; the others do not notice."""

from __future__ import annotations

import os

from counted import Numbers, Pass, Written

from ardea import Bolt, Grouping, Topology


class Greedy(Bolt):
    """The first life of its process is killed for its memory."""

    outputs = ["number"]

    def initialize(self, config, context):
        self.first = os.environ["ARDEA_LIFE"] == "1"

    def process(self, tup):
        if self.first and tup[0] > 2000:
            self.hoard = [os.urandom(16 << 20) for _ in range(100)]
        self.emit(list(tup.values))


class Counted(Topology):
    numbers = Numbers.spec()
    middle = Pass.spec(inputs=[numbers])
    greedy = Greedy.spec(inputs=[middle])
    written = Written.spec(inputs={greedy: Grouping.fields("number")}, par=2)

    config = {"topology.max.spout.pending": 200, "topology.message.timeout.secs": 20, "topology.stmgrs": 2}
