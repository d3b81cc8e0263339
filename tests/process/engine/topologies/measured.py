"""A word count whose numbers are watched, and two topologies whose memory is."""

from __future__ import annotations

import time
from collections import Counter

from leaving import LeavingBolt, LeavingSpout

from ardea import CountMetric, Grouping, MeanReducer, MultiCountMetric, ReducedMetric, Topology

LINE = "a heron stands alone"


class Lines(LeavingSpout):
    """Emits until ``pause``, ends at ``enough``."""

    outputs = ["line"]

    def begin(self):
        self.emitted = 0
        self.paused = False

    def next_tuple(self):
        self.paused = self.paused or self.flag("pause")
        if not self.paused:
            for _ in range(20):
                self.emitted += 1
                self.emit([LINE], tup_id=self.emitted)
        elif self.flag("enough"):
            self.finish()

    def close(self):
        self.leave(self.emitted)


class Split(LeavingBolt):
    outputs = ["word"]

    def begin(self):
        self.lines = self.context.register_metric("lines", CountMetric())
        self.words = self.context.register_metric("words", MultiCountMetric())
        self.length = self.context.register_metric("length", ReducedMetric(MeanReducer()))

    def process(self, tup):
        self.lines.incr()
        words = tup["line"].split()
        self.length.update(len(words))
        for word in words:
            self.words.incr(word)
            self.emit([word])


class Count(LeavingBolt):
    def begin(self):
        self.counts = Counter()

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def end_of_input(self):
        self.leave(self.counts)


class WordCount(Topology):
    lines = Lines.spec()
    split = Split.spec(inputs=[lines], par=2)
    count = Count.spec(inputs={split: Grouping.fields("word")}, par=2)

    config = {"topology.stmgrs": 2, "topology.max.spout.pending": 1000}


class Words(LeavingSpout):
    """As many words as ``test.words`` says."""

    outputs = ["word"]

    def begin(self):
        self.left = self.config["test.words"]

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        for number in range(min(self.left, 100)):
            self.emit([f"word {self.left - number:9}"], tup_id=number)
        self.left -= min(self.left, 100)


class CountBatches(LeavingBolt):
    def begin(self):
        self.count = 0

    def process_batch(self, rows):
        self.count += len(rows)

    def end_of_input(self):
        self.leave(self.count)


class AtMostOnce(Topology):
    words = Words.spec()
    count = CountBatches.spec(inputs={words: Grouping.fields("word")}, par=2)

    config = {"topology.stmgrs": 2, "topology.reliability.mode": "ATMOST_ONCE"}


class Few(LeavingSpout):
    """So many numbers: ``test.numbers``."""

    outputs = ["number"]

    def begin(self):
        self.left = self.config["test.numbers"]

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        self.left -= 1
        self.emit([self.left], tup_id=self.left)


class FlatMap(LeavingBolt):
    """Ten thousand rows of a kilobyte out of one."""

    outputs = ["number", "body"]

    def process(self, tup):
        for number in range(10_000):
            self.emit([number, bytes(1000)])


class Slow(LeavingBolt):
    """Thirty thousand rows a second."""

    def begin(self):
        self.count = 0

    def process_batch(self, rows):
        self.count += len(rows)
        time.sleep(len(rows) / 30_000)

    def end_of_input(self):
        self.leave(self.count)


class Flood(Topology):
    """The flat map in one container, the slow bolt in the other."""

    numbers = Few.spec()
    flat = FlatMap.spec(inputs=[numbers])
    slow = Slow.spec(inputs=[flat])

    config = {"topology.stmgrs": 2}
