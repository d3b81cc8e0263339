"""Numbers through a bolt into a collector's pod: whatever happens in between, what was read has to be written."""

from __future__ import annotations

import os
import socket
import time

from ardea import Bolt, Grouping, Spout, Topology

HOST, PORT = os.environ.get("COLLECTOR", "collector"), 9000


class Collector:
    """One connection; each request is a line, each answer a line."""

    def __init__(self):
        self.file = None

    def ask(self, line):
        """Raises OSError if the collector is out of reach."""
        try:
            if self.file is None:
                self.file = socket.create_connection((HOST, PORT), timeout=5).makefile("rw")
            self.file.write(f"{line}\n")
            self.file.flush()
            answer = self.file.readline()
            if not answer:
                raise OSError("the collector closed the connection")
            return answer.strip()
        except OSError:
            self.file = None
            raise


class Numbers(Spout):
    """Counts from where the acks without a gap end, which the collector keeps; until that says that it is enough."""

    outputs = ["number"]

    def initialize(self, config, context):
        self.collector = Collector()
        self.low = self.next = int(self.collector.ask("low"))
        self.acked = set()
        self.end = None

    def next_tuple(self):
        if self.next % 100 == 0 and self.end is None:
            answer = self.collector.ask(f"end {self.next}")
            self.end = int(answer) if answer != "none" else None
        if self.end is not None and self.next >= self.end:
            self.collector.ask(f"keep {self.low}")
            self.finish()
            return
        self.emit([self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked.add(tup_id)
        if tup_id != self.low:
            return
        while self.low in self.acked:
            self.acked.remove(self.low)
            self.low += 1
        self.collector.ask(f"keep {self.low}")


class Pass(Bolt):
    outputs = ["number"]

    def process(self, tup):
        self.emit(list(tup.values))


class Written(Bolt):
    """A number is with the collector before it is acked; tuples wait for it, and the cores do not."""

    def initialize(self, config, context):
        self.collector = Collector()

    def process(self, tup):
        self.collector.ask(f"number {tup[0]}")
        time.sleep(0.01)


class Counted(Topology):
    numbers = Numbers.spec()
    middle = Pass.spec(inputs=[numbers], par=2)
    written = Written.spec(inputs={middle: Grouping.fields("number")}, par=2)

    config = {"topology.max.spout.pending": 200, "topology.message.timeout.secs": 20, "topology.stmgrs": 2}
