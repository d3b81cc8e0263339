"""Heron's functional tests (Python), side by side in one topology: who feeds whom, by which grouping."""

from __future__ import annotations

from collections import Counter

from leaving import LeavingBolt, LeavingSpout

from ardea import Grouping, Topology


class AB(LeavingSpout):
    """Emits A and B in turn, ``executions`` of them."""

    outputs = ["word"]
    executions = 10

    def begin(self):
        self.emitted = 0

    def next_tuple(self):
        if self.emitted == self.executions:
            self.finish()
            return
        self.emit(["AB"[self.emitted % 2]], tup_id=self.emitted)
        self.emitted += 1


class AB400(AB):
    executions = 400


class Identity(LeavingBolt):
    """Passes on what it gets, and leaves how often it got each word."""

    outputs = ["word"]

    def begin(self):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1
        self.emit([tup["word"]])

    def end_of_input(self):
        self.leave(self.counts)


class Double(Identity):
    def process(self, tup):
        super().process(tup)
        self.emit([tup["word"]])


class WordCount(Identity):
    """At the end it emits how many different words it has seen."""

    outputs = ["different"]

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def end_of_input(self):
        self.emit([len(self.counts)])
        super().end_of_input()


class Sum(LeavingBolt):
    def begin(self):
        self.parts = []

    def process(self, tup):
        self.parts.append(tup["different"])

    def end_of_input(self):
        self.leave(sorted(self.parts))


class Shapes(Topology):
    one = AB.spec()
    three = AB.spec(par=3)
    other_three = AB.spec(par=3)
    many = AB400.spec()

    everyone = Identity.spec(inputs={one: Grouping.ALL}, par=2)
    single = Identity.spec(inputs=[one])
    double = Double.spec(inputs=[one])
    doubled = Identity.spec(inputs=[double])
    shuffled = Identity.spec(inputs={one: Grouping.SHUFFLE}, par=3)
    whichever = Identity.spec(inputs={one: Grouping.NONE}, par=3)
    lowest = WordCount.spec(inputs={one: Grouping.GLOBAL}, par=3)
    lowest_sum = Sum.spec(inputs=[lowest])
    three_to_one = Identity.spec(inputs=[three])
    three_to_three = Identity.spec(inputs=[three], par=3)
    six_to_one = Identity.spec(inputs=[three, other_three])
    counts = WordCount.spec(inputs={many: Grouping.fields("word")}, par=2)
    counts_sum = Sum.spec(inputs={counts: Grouping.GLOBAL})

    config = {"topology.stmgrs": 2, "heron.resources.instance.cpu": 0.1}
