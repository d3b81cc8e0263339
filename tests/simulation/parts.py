"""Components that several topologies of these tests are made of."""

from __future__ import annotations

from collections import Counter

from ardea import Bolt, Spout, Topology
from ardea.testing import CollectBolt, RowsSpout

AB = RowsSpout.of(["word"], [["A" if i % 2 == 0 else "B"] for i in range(10)])
"""Heron's ABSpout: A and B in turn, ten of them."""


class Endless(Spout):
    """One tracked number after the other."""

    outputs = ["n"]

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        self.n += 1
        self.emit([self.n], tup_id=self.n)


class Running(Topology):
    spout = Endless.spec()
    sink = CollectBolt.spec(inputs=[spout])


class Identity(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit(list(tup.values))


class Twice(Bolt):
    outputs = ["word"]

    def process(self, tup):
        self.emit(list(tup.values))
        self.emit(list(tup.values))


class WordCounter(Bolt):
    """Emits (word, count so far) for each word."""

    outputs = ["word", "count"]

    def initialize(self, config, context):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup[0]] += 1
        self.emit([tup[0], self.counts[tup[0]]])


class TupleCounter(Bolt):
    """At the end, how many tuples its task got."""

    outputs = ["count"]

    def initialize(self, config, context):
        self.count = 0

    def process(self, tup):
        self.count += 1

    def end_of_input(self):
        self.emit([self.count])


class GlobalCounter(Bolt):
    """Emits 1, 2, 3 ... as tuples come."""

    outputs = ["count"]

    def initialize(self, config, context):
        self.count = 0

    def process(self, tup):
        self.count += 1
        self.emit([self.count])
