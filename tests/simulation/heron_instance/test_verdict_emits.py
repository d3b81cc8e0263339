"""Emitting in ``ack``, ``fail`` and ``idle``, whatever keeps ``next_tuple`` from being called."""

from __future__ import annotations

import pytest

from ardea import Bolt, Topology
from ardea.protocol.wire_pb2 import PAUSE
from ardea.testing import Cluster, CollectBolt, run

from .parts import Numbering, numbers

ONE_PENDING = {"topology.max.spout.pending": 1}


class Answers(Numbering):
    """Five questions in one call; each verdict on one is answered by another tracked row."""

    ends = True

    def initialize(self, config, context):
        super().initialize(config, context)
        self.open_at_answers = []

    def next_tuple(self):
        if self.n == 0:
            for n in range(5):
                self.say("question", ("question", n))
        if self.ends:
            self.finish()  # again, after each fail

    def ack(self, tup_id):
        self.heard(tup_id)

    def fail(self, tup_id):
        self.heard(tup_id)
        return True

    def heard(self, tup_id):
        self.open -= 1
        if tup_id[0] == "question":
            self.open_at_answers.append(self.open)
            self.say("answer", ("answer", tup_id[1]))


class FailsQuestions(Bolt):
    def process(self, tup):
        if tup["word"] == "question":
            self.fail(tup)


class AnswersForEver(Answers):
    ends = False


def answering(bolt, spout=Answers):
    spout = spout.spec("spout")
    return type("Answering", (Topology,), {"a": spout, "b": bolt.spec("sink", inputs=[spout]), "config": ONE_PENDING})


@pytest.mark.parametrize("containers", [1, 2])
@pytest.mark.parametrize("bolt", [CollectBolt, FailsQuestions])
def test_answers_leave_while_pending_is_full(bolt, containers):
    """One open tree is allowed; there are always more, and still each verdict's row leaves, in order."""
    with Cluster(answering(bolt), containers=containers, cost={"sink": 0.05}) as cluster:
        cluster.run_until(lambda: len(cluster.record.inputs("sink")) == 5)
        source = cluster.task("spout-0", Answers)
        cluster.run_until(lambda: cluster.over)
    assert cluster.state == "SUCCEEDED"
    assert len(source.open_at_answers) == 5
    assert max(source.open_at_answers) > 1, "pending was never full"
    assert numbers(cluster, "sink") == list(range(10))
    assert len(cluster.record.acked["spout"]) == (10 if bolt is CollectBolt else 5)


@pytest.mark.parametrize("bolt", [CollectBolt, FailsQuestions])
def test_answers_leave_while_deactivated(bolt):
    """The topology is deactivated before the first verdict: all rows of ``ack`` and ``fail`` reach the bolt."""
    with Cluster(answering(bolt, AnswersForEver), containers=2, cost={"sink": 0.05}) as cluster:
        cluster.run_until(lambda: cluster.record.emitted["spout"])
        cluster.deactivate()
        cluster.advance(5)
        assert cluster.state == "PAUSED"
        assert numbers(cluster, "sink") == list(range(10))


def test_answers_leave_while_paused(headers):
    """Far too much waits for the bolt: it pauses the spout, which goes on to answer."""

    class Many(Numbering):
        answered_when_paused = 0
        rows = 400

        def next_tuple(self):
            if self.n < self.rows:
                self.say("question", "question")
            else:
                self.finish()

        def ack(self, tup_id):
            if tup_id == "question":
                pauses = [h.paused for p, _, h in headers if p == "spout-0" and h.kind == PAUSE]
                if pauses and pauses[-1]:
                    type(self).answered_when_paused += 1
                    self.say("answer")

    class Paused(Topology):
        spout = Many.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(Paused, cost={"sink": 0.05}, seed=1)
    assert result.state == "SUCCEEDED"
    assert Many.answered_when_paused > 0
    assert numbers(result, "sink") == list(range(len(result.inputs("sink"))))
    assert len(result.inputs("sink")) >= Many.rows


class Idles(Numbering):
    """One question, then silence; notes when ``next_tuple`` and ``idle`` are called."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.calls, self.idles = [], []
        self.now = lambda: 0.0
        self.finishes = bool(config.get("finishes"))

    def next_tuple(self):
        self.calls.append(self.now())
        if self.n == 0:
            self.say("question", 0)
        elif self.finishes:
            self.finish()

    def idle(self):
        self.idles.append(self.now())
        self.say("idle")


class Never(Bolt):
    auto_ack = False

    def process(self, tup):
        pass


class Idling(Topology):
    spout = Idles.spec()
    sink = Never.spec(inputs=[spout])
    config = {"topology.message.timeout.secs": 1000}


@pytest.mark.parametrize("why", ["pending full", "deactivated", "finished"])
def test_idle_is_called_while_next_tuple_is_not(why):
    """About ten times a second, no more and not much less, and what it emits arrives."""
    with Cluster(Idling, config={**(ONE_PENDING if why == "pending full" else {}), "finishes": why == "finished"}) as c:
        c.run_until(lambda: c.record.inputs("sink"))
        source = c.task("spout-0", Idles)
        source.now = lambda: c.time
        if why == "deactivated":
            c.deactivate()
        c.advance(0.5)
        source.calls.clear()
        source.idles.clear()
        c.advance(10)
        assert not source.calls
        assert 90 <= len(source.idles) <= 101
        gaps = [after - before for before, after in zip(source.idles, source.idles[1:], strict=False)]
        assert min(gaps) >= 0.0999
        assert max(gaps) < 0.15
        assert c.record.inputs("sink")[-1][1] == "idle"


def test_idle_is_not_called_while_next_tuple_is():
    """A spout that is asked all the time need not idle."""
    with Cluster(Idling) as cluster:
        cluster.advance(1)
        source = cluster.task("spout-0", Idles)
        source.calls.clear()
        source.idles.clear()
        cluster.advance(3)
        assert len(source.calls) > 100
        assert not source.idles


def test_messages_do_not_put_idle_off():
    """Verdicts that keep the executor busy while ``next_tuple`` is not called change nothing of its rhythm."""

    class Busy(Idles):
        def next_tuple(self):
            for n in range(100):
                self.say("question", n)
            self.finish()

    class BusyTopology(Topology):
        spout = Busy.spec()
        sink = CollectBolt.spec(inputs=[spout])

    with Cluster(BusyTopology, cost={"sink": 0.03}) as cluster:
        cluster.run_until(lambda: cluster.record.inputs("sink"))
        source = cluster.task("spout-0", Busy)
        source.now = lambda: cluster.time
        cluster.advance(2.5)
        gaps = [after - before for before, after in zip(source.idles, source.idles[1:], strict=False)][2:]
        assert len(gaps) > 15
        assert max(gaps) < 0.15
