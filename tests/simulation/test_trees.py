"""Tuple trees: sentence -> words -> letters -> counts, one tree a sentence, whatever its size."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, FeederSpout, RowsSpout, run


class Words(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word])


class Letters(Bolt):
    outputs = ["letter"]

    def process(self, tup):
        for letter in tup[0]:
            self.emit([letter])


class Count(Bolt):
    def process(self, tup):
        pass


class ByHand(Bolt):
    """Anchors and acks itself; forgets to ack what holds a ``!``."""

    auto_anchor = auto_ack = auto_fail = False


class WordsByHand(ByHand):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word], anchors=[tup])
        self.ack(tup)


class LettersByHand(ByHand):
    outputs = ["letter"]

    def process(self, tup):
        for letter in tup[0]:
            self.emit([letter], anchors=[tup])
        self.ack(tup)


class CountByHand(ByHand):
    def process(self, tup):
        if tup[0] != "!":
            self.ack(tup)


AUTOMATIC = (Words, Letters, Count)
BY_HAND = (WordsByHand, LettersByHand, CountByHand)


def sentences(parts, spout, **config):
    words, letters, count = parts
    lines = spout.spec("lines")
    split = words.spec("words", par=2, inputs=[lines])
    spell = letters.spec("letters", par=2, inputs=[split])
    tally = count.spec("count", par=3, inputs={spell: Grouping.fields("letter")})
    return type("Sentences", (Topology,), {"l": lines, "w": split, "s": spell, "c": tally, "config": config})


@pytest.mark.sampled(3)
@pytest.mark.parametrize("parts", [AUTOMATIC, BY_HAND], ids=["automatic", "by hand"])
@pytest.mark.parametrize("containers", [1, 2, 3])
def test_each_sentence_is_acked_once(parts, containers):
    """Trees of 1 to 10,000 edges: one ack each, after all their letters were counted."""
    lines = [[""], ["a"], ["ab"], ["the quick brown fox"], ["x" * 300], [" ".join(["heron"] * 1665)]]
    edges = [1 + len(line.split()) + len(line.replace(" ", "")) for (line,) in lines]
    assert (edges[0], edges[-1]) == (1, 9991)
    topology = sentences(parts, RowsSpout.of(["line"], lines))
    result = run(topology, containers=containers, seed=containers)
    assert result.state == "SUCCEEDED"
    assert sorted(result.acked["lines"]) == list(range(len(lines)))
    assert Counter(result.inputs("count")) == Counter((c,) for (line,) in lines for c in line.replace(" ", ""))


@pytest.mark.parametrize("containers", [1, 2])
def test_forgetting_one_ack_fails_exactly_that_sentence(containers):
    """One letter of one sentence is never acked: that sentence times out, the others are acked."""
    topology = sentences(BY_HAND, FeederSpout.of("line"), **{"topology.message.timeout.secs": 10})
    with Cluster(topology, containers=containers, seed=4) as cluster:
        cluster.advance(1)
        feeder = cluster.task("lines-0", FeederSpout)
        for number, line in enumerate(["all good", "not so good !", "the end"]):
            feeder.feed([line], tup_id=number)
        cluster.advance(9.9)
        assert sorted(cluster.record.acked["lines"]) == [0, 2]
        assert cluster.record.timed_out["lines"] == []
        cluster.advance(1)
        assert cluster.record.timed_out["lines"] == [1]
        assert sorted(cluster.record.acked["lines"]) == [0, 2]


class Join(Bolt):
    """Holds tuples until it has ``size``, then emits one row anchored to them all, and acks them."""

    auto_ack = False
    outputs = ["line"]
    size = 3

    def initialize(self, config, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) == self.size:
            self.release()

    def flush(self):
        self.release()

    def release(self):
        if self.held:
            # One of them twice: the same anchor counts once.
            self.emit(["".join(t[0] for t in self.held)], anchors=[*self.held, self.held[0]])
            for tup in self.held:
                self.ack(tup)
            self.held = []


@pytest.mark.parametrize("containers", [1, 2])
def test_joins_hold_tuples_of_many_trees(containers):
    """Held over batches, anchored together, flushed at the rest: every tree is acked once."""

    class Joined(Topology):
        lines = RowsSpout.of(["line"], [[chr(97 + n % 26)] for n in range(100)]).spec()
        join = Join.spec(par=2, inputs=[lines])
        count = Count.spec(inputs=[join])

    result = run(Joined, containers=containers, seed=2)
    assert (result.state, sorted(result.acked["lines"])) == ("SUCCEEDED", list(range(100)))
    assert sum(len(line) for (line,) in result.inputs("count")) == 100


@pytest.mark.parametrize("containers", [1, 2])
def test_diamonds(containers):
    """Two ways from a spout to one join of pairs that belong together: still one ack a tree."""

    class Pair(Bolt):
        auto_ack = False
        outputs = ["line"]

        def initialize(self, config, context):
            self.first = {}

        def process(self, tup):
            other = self.first.pop(tup[0], None)
            if other is None:
                self.first[tup[0]] = tup
            else:
                self.emit([tup[0]], anchors=[other, tup])
                self.ack(other)
                self.ack(tup)

    class Copy(Bolt):
        outputs = ["line"]

        def process(self, tup):
            self.emit([tup[0]])

    class Diamond(Topology):
        lines = RowsSpout.of(["line"], [[n] for n in range(300)]).spec()
        left = Copy.spec(par=2, inputs=[lines])
        right = Copy.spec(par=2, inputs=[lines])
        pair = Pair.spec(par=2, inputs={left: Grouping.fields("line"), right: Grouping.fields("line")})
        count = Count.spec(inputs=[pair])

    result = run(Diamond, containers=containers, seed=9)
    assert (result.state, sorted(result.acked["lines"])) == ("SUCCEEDED", list(range(300)))
    assert sorted(result.inputs("count")) == [(n,) for n in range(300)]
