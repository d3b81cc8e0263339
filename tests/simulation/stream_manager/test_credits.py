"""Credit: whoever is slow, nothing stops for good and no queue grows without bound.

The bounds themselves are watched by the cluster after every event (ardea/testing/audit.py).
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout, run
from ardea.testing.inside import Inside
from tests.simulation.parts import Identity
from tests.sizes import share

SMALL = {"heron.instance.internal.queue.bytes": 8192, "heron.streammgr.cache.drain.size.bytes": 4096}
PARTS = ("spout", "first", "second", "sink")


class Chain(Topology):
    spout = RowsSpout.of(["word"], [[f"word number {n}"] for n in range(90)]).spec(par=2)
    first = Identity.spec(par=2, inputs=[spout])
    second = Identity.spec(par=2, inputs={first: Grouping.fields("word")})
    sink = CollectBolt.spec(par=2, inputs=[second, spout])


@settings(max_examples=share(12))
@given(
    costs=st.lists(st.sampled_from([1e-5, 1e-3, 0.02]), min_size=4, max_size=4),
    containers=st.integers(1, 3),
    seed=st.integers(0, 10**6),
)
def test_whoever_is_slow(costs, containers, seed):
    """A chain with a short cut, small queues, and slow components anywhere: all of it arrives, once."""
    cost = dict(zip(PARTS, costs, strict=True))
    result = run(Chain, containers=containers, config=SMALL, seed=seed, cost=cost)
    assert (result.state, len(result.acked["spout"])) == ("SUCCEEDED", 90)
    assert len(result.inputs("sink")) == 180


class Flood(Bolt):
    """Emits ``factor`` rows for each tuple."""

    outputs = ["word"]
    factor = 1

    def process(self, tup):
        for number in range(self.factor):
            self.emit([f"{tup[0]}.{number}"])


def flood(*factors):
    """A chain of flat maps in front of a sink."""
    parts = {"spout": RowsSpout.of(["word"], [["a"], ["b"], ["c"]]).spec("spout")}
    last = parts["spout"]
    for number, factor in enumerate(factors):
        cls = type("Flood", (Flood,), {"factor": factor})
        last = parts[f"flood{number}"] = cls.spec(f"flood{number}", inputs=[last])
    parts["sink"] = CollectBolt.spec("sink", inputs=[last])
    return type("Flooded", (Topology,), parts)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("containers", [1, 2])
def test_a_flat_map_in_front_of_a_slow_bolt(containers):
    """1:5,000 rows in one call: the emit waits for credit, and at most the limit is held."""
    limit = 64 * 1024
    config = {**SMALL, "topology.max.held.bytes": limit, "topology.executor.batch.rows": 250}
    with Cluster(flood(5000), containers=containers, config=config, seed=1, cost={"sink": 1e-3}) as cluster:
        peak = 0

        def over():
            nonlocal peak
            peak = max(peak, Inside(cluster).held_bytes("flood0-0"))
            return cluster.over

        cluster.run_until(over, 3600)
        assert (cluster.state, cluster.record.acked["spout"]) == ("SUCCEEDED", [0, 1, 2])
        assert len(cluster.record.inputs("sink")) == 15_000
        assert limit / 2 < peak < 2 * limit


@pytest.mark.sampled(2)
@pytest.mark.parametrize("containers", [1, 2])
def test_two_flat_maps_that_wait_for_each_other_in_turn(containers):
    """1:60:60 with little room: both wait inside emits, and both go on."""
    config = {**SMALL, "topology.max.held.bytes": 4096, "topology.executor.batch.rows": 5}
    result = run(flood(60, 60), containers=containers, config=config, seed=2, cost={"sink": 1e-4})
    assert (result.state, sorted(result.acked["spout"])) == ("SUCCEEDED", [0, 1, 2])
    assert len(set(result.inputs("sink"))) == 3 * 60 * 60


def test_a_slow_bolt_pauses_only_the_spouts_that_reach_it():
    """One branch is slow: its spout is held back, the other branch goes on at its own speed."""

    class Branches(Topology):
        slow_spout = RowsSpout.of(["word"], [[n] for n in range(2000)]).spec()
        slow = CollectBolt.spec(inputs=[slow_spout])
        fast_spout = RowsSpout.of(["word"], [[n] for n in range(2000)]).spec()
        fast = CollectBolt.spec(inputs=[fast_spout])

    with Cluster(Branches, containers=2, seed=1, cost={"slow": 0.05}) as cluster:
        cluster.run_until(lambda: len(cluster.record.acked["fast_spout"]) == 2000, timeout=2)
        cluster.run_until(lambda: cluster.over, timeout=200)
        assert (cluster.state, len(cluster.record.acked["slow_spout"])) == ("SUCCEEDED", 2000)
        assert not cluster.record.timed_out["slow_spout"]


def test_slow_tuples_do_not_time_out_for_waiting():
    """A bolt of 20 tuples/s and a timeout of 6 s: what waits for credit does not count, so nothing is sent twice."""

    class Slow(Topology):
        spout = RowsSpout.of(["word"], [[n] for n in range(500)]).spec()
        sink = CollectBolt.spec(inputs=[spout])
        config = {"topology.message.timeout.secs": 6}

    result = run(Slow, containers=2, seed=3, cost={"sink": 0.05})
    assert (result.state, len(result.inputs("sink"))) == ("SUCCEEDED", 500)
    assert not result.record.timed_out["spout"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("containers", [1, 2])
@pytest.mark.parametrize("cost", [0.02, 0.1])
def test_a_slow_bolt_behind_a_quick_one_pauses_the_spout_before_tuples_time_out(containers, cost):
    """In a second the spout could emit more than the slow bolt takes in the timeout, and the quick one passes it on."""

    class Chain(Topology):
        spout = RowsSpout.of(["word"], [[n] for n in range(20_000)]).spec()
        quick = Identity.spec(inputs=[spout])
        slow = CollectBolt.spec(inputs=[quick])

    with Cluster(Chain, containers=containers, seed=5, cost={"spout": 1e-4, "slow": cost}, check=False) as cluster:
        cluster.advance(60)
        assert not cluster.record.timed_out["spout"]
        assert len(cluster.record.acked["spout"]) > 0.95 * 60 / cost
