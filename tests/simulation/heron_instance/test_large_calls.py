"""Any number of rows out of one call: they leave inside it, and the input's own ack comes last."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from ardea.testing.inside import Inside

from .parts import numbers

containers = pytest.mark.parametrize("containers", [2, 1])


class Watched:
    """How many rows wait inside a call, against what may."""

    def __init__(self):
        self.task_output = None
        self.peak = self.emits = self.above = 0

    def look(self):
        self.emits += 1
        waiting, limit = self.task_output.waiting, self.task_output.row_limit
        self.peak = max(self.peak, waiting)
        self.above += waiting > limit


def watch(cluster, name):
    """Begins before the first call."""
    watched = Watched()
    inside = Inside(cluster)
    cluster.run_until(lambda: inside.executor(name))
    watched.task_output = inside.executor(name).task_output
    return watched


@pytest.mark.thorough
@containers
def test_a_hundred_thousand_rows_from_one_next_tuple(containers):
    """Every tenth is tracked; at most four batches wait at any time; all arrive, in order."""
    watched = None

    class Bulk(Spout):
        outputs = ["n"]

        def next_tuple(self):
            for n in range(100_000):
                self.emit([n], tup_id=None if n % 10 else n)
                watched.look()
            self.finish()

    class BulkTopology(Topology):
        spout = Bulk.spec()
        sink = CollectBolt.spec(inputs=[spout])

    with Cluster(BulkTopology, containers=containers, active=False, cost={"sink": 1e-6}) as cluster:
        watched = watch(cluster, "spout-0")
        cluster.activate()
        cluster.run_until(lambda: cluster.over, 600)
    assert (cluster.state, watched.emits, watched.above) == ("SUCCEEDED", 100_000, 0)
    assert watched.peak < 4000
    assert numbers(cluster, "sink") == list(range(100_000))
    assert cluster.record.acked["spout"] == list(range(0, 100_000, 10))


class Flat(Bolt):
    """1:10,000 in one call of ``process``."""

    outputs = ["n", "part"]
    watched = None

    def process(self, tup):
        for part in range(10_000):
            self.emit([tup["n"], part])
            self.watched.look()


class FailsOnce(Bolt):
    """Fails the last part of input 1 the first time."""

    def initialize(self, config, context):
        self.failed = False

    def process(self, tup):
        if tuple(tup.values) == (1, 9_999) and not self.failed:
            self.failed = True
            self.fail(tup)


@pytest.mark.sampled(2)
@containers
def test_one_process_call_of_ten_thousand_rows(containers):
    """Bounded while it lasts; each tree is judged once, after all its parts, and fails with the last of them."""

    class Flattened(Topology):
        spout = RowsSpout.of(["n"], [[0], [1], [2]]).spec()
        flat = Flat.spec(inputs=[spout])
        sink = FailsOnce.spec(inputs=[flat])

    with Cluster(Flattened, containers=containers, active=False, cost={"sink": 1e-6}) as cluster:
        watched = Flat.watched = watch(cluster, "flat-0")
        cluster.activate()
        cluster.run_until(lambda: cluster.over, 600)
    assert (cluster.state, watched.emits, watched.above) == ("SUCCEEDED", 40_000, 0)
    assert watched.peak < 4000
    assert cluster.record.failed["spout"] == [1]
    assert sorted(cluster.record.acked["spout"]) == [0, 1, 2]
    parts = cluster.record.inputs("sink")
    assert [part for n, part in parts if n == 0] == list(range(10_000))
    assert len(parts) == 40_000


class FlatBatches(Bolt):
    """The same of whole batches."""

    outputs = ["n", "part"]

    def process_batch(self, rows):
        for part in range(300):
            self.emit([rows[0]["n"], part])


def test_rows_behind_a_flush_inside_process_batch_stay_anchored():
    """The batch's trees fail with a row that was emitted long after the first rows had left."""

    class FailsLast(Bolt):
        def initialize(self, config, context):
            self.failed = False

        def process(self, tup):
            if tup["part"] == 299 and not self.failed:
                self.failed = True
                self.fail(tup)

    class Flattened(Topology):
        spout = RowsSpout.of(["n"], [[0]]).spec()
        flat = FlatBatches.spec(inputs=[spout])
        sink = FailsLast.spec(inputs=[flat])
        config = {"topology.executor.batch.rows": 10}

    result = run(Flattened)
    assert (result.state, result.failed["spout"], result.acked["spout"]) == ("SUCCEEDED", [0], [0])
    assert len(result.inputs("sink")) == 600


@pytest.mark.parametrize("mode", [{"topology.reliability.mode": "ATMOST_ONCE"}, {"topology.acker.executors": 0}])
def test_rows_that_left_inside_a_call_are_acked_at_once_too(mode):
    """Without acking, ``ack`` hears of each of 9,000 ids of a call that flushed twice, and of those of ``ack``."""
    heard = []

    class Bulk(Spout):
        outputs = ["n"]

        def next_tuple(self):
            for n in range(9_000):
                self.emit([n], tup_id=n)
            self.finish()

        def ack(self, tup_id):
            heard.append(tup_id)
            if tup_id == 5:
                self.emit([-1], tup_id="more")

    class BulkTopology(Topology):
        spout = Bulk.spec()
        sink = CollectBolt.spec(inputs=[spout])

    result = run(BulkTopology, config=mode, cost={"sink": 1e-6})
    assert (result.state, len(result.inputs("sink"))) == ("SUCCEEDED", 9_001)
    assert (heard[:9_000], heard[9_000:]) == (list(range(9_000)), ["more"])
    assert result.acked["spout"] == heard


@pytest.mark.parametrize("extra", [0, 1, 7])
def test_a_large_call_counts_for_pending(extra):
    """A call that fills up pending is the last until verdicts come, however much of it has left already."""
    calls = []

    class Bulk(Spout):
        outputs = ["n"]
        config = {"topology.max.spout.pending": 100, "topology.executor.batch.rows": 50}

        def next_tuple(self):
            calls.append(1)
            for n in range(400 + extra):
                self.emit([n], tup_id=n)

    class Holding(Bolt):
        auto_ack = False

        def process(self, tup):
            pass

    class BulkTopology(Topology):
        spout = Bulk.spec()
        sink = Holding.spec(inputs=[spout])

    with Cluster(BulkTopology) as cluster:
        cluster.advance(5)
        assert len(calls) == 1
        assert len(cluster.record.inputs("sink")) == 400 + extra
