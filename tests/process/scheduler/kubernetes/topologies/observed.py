"""Everything that alerts and dashboards tell of: work, failures, exceptions, and a bolt that cannot keep up."""

from __future__ import annotations

import threading

from ardea import Bolt, Grouping, Spout, Topology

NEVER = threading.Event()
BALLAST = "x" * 20_000


class Lines(Spout):
    outputs = ["number", "ballast"]

    def initialize(self, config, context):
        self.next = 0

    def next_tuple(self):
        self.emit((self.next, BALLAST), tup_id=self.next)
        self.next += 1


class Slow(Bolt):
    outputs = ["number"]

    def process(self, tup):
        NEVER.wait(0.005)
        if tup["number"] % 50 == 49:
            raise ValueError("every fiftieth")
        self.emit((tup["number"],))


class Last(Bolt):
    def process(self, tup):
        pass


class Observed(Topology):
    config = {
        "topology.stmgrs": 2,
        "topology.max.spout.pending": 10_000,
        "topology.container.cpu.padding": 0.2,
        "heron.resources.instance.cpu": 0.1,
        "heron.resources.instance.ram": 256 * 1024 * 1024,
        "heron.streammgr.network.backpressure.highwatermark.mb": 2,
        "heron.streammgr.network.backpressure.lowwatermark.mb": 1,
    }
    lines = Lines.spec()
    slow = Slow.spec(inputs={lines: Grouping.SHUFFLE})
    last = Last.spec(inputs={slow: Grouping.SHUFFLE})
