"""Held tuples: acked, failed and anchored to long after they came; every tree still has its one exact verdict."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, Grouping, Spout, Topology, UserError
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from ardea.testing.inside import Inside
from tests.sizes import share


class Holding(Bolt):
    """Keeps all it gets."""

    auto_ack = False
    outputs = ["n"]

    def initialize(self, config, context):
        self.held = []

    def process(self, tup):
        self.held.append(tup)

    def release(self):
        for tup in self.held:
            self.ack(tup)
        self.held = []


class UntilTick(Holding):
    config = {"topology.tick.tuple.freq.secs": 3}

    def process_tick(self, tup):
        self.release()


class UntilFlush(Holding):
    def flush(self):
        self.release()


class UntilTheNextBatch(UntilFlush):
    def process(self, tup):
        if self.held and self.held[-1].id.rpartition(":")[0] != tup.id.rpartition(":")[0]:
            self.release()
        super().process(tup)


class AsBatches(UntilFlush):
    """Keeps the batches whole."""

    def process(self, tup):
        raise NotImplementedError

    def process_batch(self, rows):
        self.release()
        self.held.extend(rows)


class Slowly(Spout):
    """A tracked row in each call; finishes after them."""

    outputs = ["n"]
    rows = 60
    finishes = True

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        if self.n < self.rows:
            self.emit([self.n], tup_id=self.n)
            self.n += 1
        elif self.finishes:
            self.finish()


class SlowlyForEver(Slowly):
    finishes = False


@pytest.mark.parametrize("containers", [1, 2])
@pytest.mark.parametrize("bolt", [UntilTick, UntilFlush, UntilTheNextBatch, AsBatches])
def test_acked_later(bolt, containers):
    """From a tick, from ``flush``, batches later, and as whole batches: each tree is complete once."""

    class Later(Topology):
        spout = (SlowlyForEver if bolt is UntilTick else Slowly).spec()
        bolt_ = bolt.spec("bolt", par=2, inputs=[spout])

    with Cluster(Later, containers=containers, cost={"spout": 0.01}) as cluster:
        cluster.advance(0.8)  # a spout that hears of no acks has more and more open in steps of a quarter of a second
        early = len(cluster.record.acked["spout"])
        cluster.advance(10)
        record = cluster.record
        assert sorted(record.acked["spout"]) == list(range(60))
        assert not record.failed["spout"]
        assert not record.timed_out["spout"]
        assert (early > 0) == (bolt in (UntilTheNextBatch, AsBatches))
        assert (cluster.state == "SUCCEEDED") == (bolt is not UntilTick)


def test_a_second_ack_is_ignored_and_counted():
    """Ack after ack, ack after fail, fail after ack, and an explicit ack of what was acked on return."""

    class Twice(Holding):
        def process(self, tup):
            self.ack(tup)
            self.ack(tup)
            self.fail(tup)

    class After(Bolt):
        outputs = ["n"]

        def initialize(self, config, context):
            self.former = None

        def process(self, tup):
            if self.former is not None:
                self.ack(self.former)
                self.fail(self.former)
            self.former = tup

    class Doubles(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(10)]).spec()
        twice = Twice.spec(inputs=[spout])
        after = After.spec(inputs=[spout])

    with Cluster(Doubles) as cluster:
        cluster.run_until(lambda: cluster.state == "SUCCEEDED")
        assert sorted(cluster.record.acked["spout"]) == list(range(10))
        assert not cluster.record.failed["spout"]
        counts = [Inside(cluster).executor(name).env.instruments for name in ("twice-0", "after-0")]
        assert counts[0].double_acks.value == 20
        # A former tuple of the same batch is not acked before its batch is through: one ack of each counts.
        assert counts[1].double_acks.value >= 9
        assert [each.acked.value for each in counts] == [10, 10]
        assert [each.failed.value for each in counts] == [0, 0]


def test_a_failed_tuple_cannot_be_acked_any_more():
    """The fail stands; the row is sent again, and acked then."""

    class FailsFirst(Holding):
        def initialize(self, config, context):
            self.seen = set()

        def process(self, tup):
            if tup["n"] not in self.seen:
                self.seen.add(tup["n"])
                self.fail(tup)
            self.ack(tup)

    class Failing(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(10)]).spec()
        bolt = FailsFirst.spec(inputs=[spout])

    with Cluster(Failing) as cluster:
        cluster.run_until(lambda: cluster.state == "SUCCEEDED")
        assert sorted(cluster.record.failed["spout"]) == sorted(cluster.record.acked["spout"]) == list(range(10))
        assert Inside(cluster).executor("bolt-0").env.instruments.double_acks.value == 10


@pytest.mark.parametrize("settle", ["ack", "fail"])
def test_an_emit_anchored_to_a_settled_tuple_is_refused(settle):
    """UserError at the emit, naming task and tuple; nothing is emitted."""
    refusals = []

    class Late(Holding):
        def process(self, tup):
            getattr(self, settle)(tup)
            try:
                self.emit([tup["n"]], anchors=[tup])
            except UserError as error:
                refusals.append((error.message, tup.id))
            self.emit([tup["n"]], anchors=[])

    class Refused(Topology):
        spout = RowsSpout.of(["n"], [[7]]).spec()
        late = Late.spec(inputs=[spout])
        sink = CollectBolt.spec(inputs=[late])

    with Cluster(Refused) as cluster:
        cluster.run_until(lambda: refusals and cluster.record.inputs("sink"))
        message, name = refusals[0]
        assert "late-0" in message
        assert name in message
        assert "acked or failed already" in message
        assert cluster.record.inputs("sink")[0] == (7,)


@pytest.mark.parametrize("containers", [1, 2])
def test_a_row_of_several_roots_fails_them_all(containers):
    """Rows anchored to three tuples each; the bolt fails one of them: exactly its three trees fail."""

    class Triples(Holding):
        def process(self, tup):
            super().process(tup)
            if len(self.held) == 3:
                self.emit([min(t["n"] for t in self.held)], anchors=self.held)
                self.release()

    class FailsOnce(Bolt):
        failed = None

        def process(self, tup):
            if FailsOnce.failed is None and tup["n"] == 12:
                FailsOnce.failed = tup["n"]
                self.fail(tup)

    class Several(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(30)]).spec()
        triples = Triples.spec(inputs=[spout])
        sink = FailsOnce.spec(inputs=[triples])

    result = run(Several, containers=containers)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(30)))
    assert sorted(result.failed["spout"]) == [12, 13, 14]


def test_one_root_over_two_paths_joined_again_fails_once():
    """A row anchored to both copies of one row hangs once in their tree; its fail is one fail of the tree."""

    class Copy(Bolt):
        outputs = ["n"]

        def process(self, tup):
            self.emit([tup["n"]])

    class Pairs(Holding):
        def process(self, tup):
            other = next((t for t in self.held if t["n"] == tup["n"]), None)
            if other is None:
                self.held.append(tup)
                return
            self.held.remove(other)
            self.emit([tup["n"]], anchors=[other, tup])
            self.ack(other)
            self.ack(tup)

    class FailsThrees(Bolt):
        def initialize(self, config, context):
            self.failed = set()

        def process(self, tup):
            if tup["n"] % 3 == 0 and tup["n"] not in self.failed:
                self.failed.add(tup["n"])
                self.fail(tup)

    class Diamond(Topology):
        spout = RowsSpout.of(["n"], [[n] for n in range(40)]).spec()
        left = Copy.spec(inputs=[spout])
        right = Copy.spec(inputs=[spout])
        pairs = Pairs.spec(inputs=[left, right])
        sink = FailsThrees.spec(inputs=[pairs])

    result = run(Diamond, containers=2)
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", list(range(40)))
    assert sorted(result.failed["spout"]) == list(range(0, 40, 3))


class Origins(Spout):
    """Each row carries the set of rows it comes from; what fails is not sent again."""

    outputs = ["origins"]
    rows = 40

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        for _ in range(7):
            if self.n == self.rows:
                self.finish()
                return
            self.emit([[self.n]], tup_id=self.n)
            self.n += 1

    def fail(self, tup_id):
        if self.n == self.rows:
            self.finish()
        return True


class Mixer(Holding):
    """Holds, emits rows anchored to any of what it holds, some of them twice, and acks in any order."""

    outputs = ["origins"]
    seed = 0

    def initialize(self, config, context):
        super().initialize(config, context)
        self.random = random.Random(f"{self.seed} {context.this_task_id}")

    def process(self, tup):
        super().process(tup)
        if self.random.random() < 0.3:
            self.mix(self.random.randint(0, len(self.held)))

    def flush(self):
        self.mix(len(self.held))

    def mix(self, count):
        done = self.random.sample(self.held, count)
        for _ in range(self.random.randint(0, 4) if self.held else 0):
            anchors = self.random.choices(self.held, k=self.random.randint(1, 4))
            self.emit([sorted({n for tup in anchors for n in tup["origins"]})], anchors=anchors)
        for tup in done:
            self.ack(tup)
            self.held.remove(tup)


class Forgets(Bolt):
    """Neither acks nor fails rows that come from number 5; fails those of number 11."""

    auto_ack = False

    def process(self, tup):
        if 11 in tup["origins"]:
            self.fail(tup)
        elif 5 not in tup["origins"]:
            self.ack(tup)


@settings(max_examples=share(25))
@given(seed=st.integers(0, 10**6), containers=st.integers(1, 2), rows=st.sampled_from([2, 1000]))
def test_any_anchoring(seed, containers, rows):
    """A tree is acked if and only if no row of its ancestry was failed or forgotten, over joins, forks and diamonds."""
    mixer = type("Mixer", (Mixer,), {"seed": seed})

    class Mixed(Topology):
        spout = Origins.spec()
        one = mixer.spec(par=2, inputs=[spout])
        two = mixer.spec(inputs=[spout, one])
        three = mixer.spec(inputs={one: Grouping.ALL, two: Grouping.SHUFFLE})
        sink = Forgets.spec(inputs=[three, two])
        config = {"topology.message.timeout.secs": 5, "topology.executor.batch.rows": rows}

    result = run(Mixed, containers=containers, seed=seed)
    got = [set(values[0]) for values in result.inputs("sink")]
    failed = {n for origins in got if 11 in origins for n in origins}
    forgotten = {n for origins in got if 5 in origins and 11 not in origins for n in origins} - failed
    assert result.state == "SUCCEEDED"
    assert sorted(result.failed["spout"]) == sorted(failed)
    assert sorted(result.record.timed_out["spout"]) == sorted(forgotten)
    assert sorted(result.acked["spout"]) == sorted(set(range(Origins.rows)) - failed - forgotten)
