"""Who is in whose container: seed 000's three bolts of two tasks each, and a mesh of any size."""

from __future__ import annotations

import hashlib
import itertools
import random

from leaving import LeavingBolt, LeavingSpout

from ardea import Grouping, Stream, Topology

ROWS = 20
ROW_BYTES = 50_000


class Source(LeavingSpout):
    """To each task of Bolt1, by name, so many rows."""

    outputs = [Stream(["number", "body", "digest"], direct=True)]

    def begin(self):
        self.left = list(itertools.product(range(ROWS), self.context.component_tasks("bolt1")))

    def next_tuple(self):
        if not self.left:
            if self.flag("enough"):
                self.finish()
            return
        number, task = self.left.pop()
        body = random.Random(number).randbytes(ROW_BYTES)
        self.emit([number, body, hashlib.sha256(body).hexdigest()], tup_id=(number, task), direct_task=task)


class Middle(LeavingBolt):
    """Passes on each row to every task of those who read it, by name; leaves who got how many intact ones from whom."""

    outputs = [Stream(["number", "body", "digest"], direct=True)]

    def begin(self):
        readers = self.context.this_targets.get("default", {})
        self.readers = [task for reader in sorted(readers) for task in self.context.component_tasks(reader)]
        self.intact = 0

    def process(self, tup):
        self.intact += hashlib.sha256(tup["body"]).hexdigest() == tup["digest"]
        for task in self.readers:
            self.emit(list(tup.values), direct_task=task)

    def end_of_input(self):
        self.leave(self.intact)


class ThreeBolts(Topology):
    source = Source.spec()
    bolt1 = Middle.spec(inputs={source: Grouping.DIRECT}, par=2)
    bolt2 = Middle.spec(inputs={bolt1: Grouping.DIRECT}, par=2)
    bolt3 = Middle.spec(inputs={bolt2: Grouping.DIRECT}, par=2)

    config = {"topology.stmgrs": 2}


class Few(LeavingSpout):
    outputs = ["number"]

    def begin(self):
        self.number = 0

    def next_tuple(self):
        if self.flag("enough"):
            self.finish()
        elif self.number < 100:
            self.emit([self.number], tup_id=self.number)
            self.number += 1


class Sink(LeavingBolt):
    def begin(self):
        self.count = 0

    def process(self, tup):
        self.count += 1

    def end_of_input(self):
        self.leave(self.count)


class Mesh(Topology):
    """Forty tasks; ``topology.max.task.parallelism`` makes it smaller."""

    numbers = Few.spec(par=20)
    sink = Sink.spec(inputs=[numbers], par=20)

    config = {"topology.stmgrs": 4}
