"""A bolt that cannot get more than so many tuples a second out of the CPU that it asks for."""

from __future__ import annotations

import time

from counted import Numbers, Written

from ardea import Bolt, Grouping, Topology


class Work(Bolt):
    outputs = ["number"]

    def initialize(self, config, context):
        self.cost = config["work.cost"]  # seconds of CPU a tuple

    def process(self, tup):
        end = time.thread_time() + self.cost
        while time.thread_time() < end:
            pass
        self.emit([tup[0]])


class Counted(Topology):
    numbers = Numbers.spec(cpu=0.1)
    work = Work.spec(inputs=[numbers], cpu=0.4)
    written = Written.spec(inputs={work: Grouping.fields("number")}, cpu=0.1)

    config = {"topology.max.spout.pending": 50, "heron.topology.master.replicas": 1}
