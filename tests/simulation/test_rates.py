"""Seed 001: a topology is as fast as its slowest component; what does not meet it is not held up."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.parts import Endless


class Sees(Bolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])


def rate(cluster, component, seconds):
    """Rows a second that a component processes."""
    before = len(cluster.record.inputs(component))
    cluster.advance(seconds)
    return (len(cluster.record.inputs(component)) - before) / seconds


def test_all_of_it_runs_at_the_rate_of_the_slowest():
    class Chain(Topology):
        spout = Endless.spec()
        quick = Sees.spec(inputs=[spout])
        slow = Sees.spec(inputs=[quick])
        last = Sees.spec(inputs=[slow])
        config = {"topology.max.spout.pending": 200}

    with Cluster(Chain, containers=2, cost={"slow": 0.02}, check=False) as cluster:
        cluster.advance(6)
        rates = {name: rate(cluster, name, 2.0) for name in ("quick", "slow", "last")}
    assert all(46 <= each <= 54 for each in rates.values()), rates


@pytest.mark.thorough
def test_a_hot_key_costs_its_task_and_not_the_other_branch():
    class Hot(Endless):
        def next_tuple(self):
            self.n += 1
            self.emit([0], tup_id=self.n)

    class Branches(Topology):
        hot = Hot.spec()
        keyed = Sees.spec(par=8, inputs={hot: Grouping.fields("n")})
        free = Endless.spec()
        other = Sees.spec(inputs=[free])
        config = {"topology.max.spout.pending": 100}

    costs = {"keyed": 0.01, "other": 0.002, "hot": 0.001, "free": 0.001}
    with Cluster(Branches, containers=2, cost=costs, check=False) as cluster:
        cluster.advance(2)
        keyed, other = rate(cluster, "keyed", 2.0), rate(cluster, "other", 2.0)
    assert 95 <= keyed <= 105, "one of eight tasks has all of it"
    assert other >= 0.9 * 500


@pytest.mark.thorough
def test_a_bolt_that_was_slow_for_a_minute_has_its_full_rate_soon_and_keeps_it():
    class Chain(Topology):
        spout = Endless.spec()
        quick = Sees.spec(inputs=[spout])
        slow = Sees.spec(inputs=[quick])

    with Cluster(Chain, containers=2, cost={"spout": 0.0005, "slow": 0.02}, check=False) as cluster:
        cluster.advance(60)
        assert 46 <= rate(cluster, "slow", 4.0) <= 54
        Inside(cluster).set_cost("slow-0", 0.002)
        cluster.advance(5)
        rates = [rate(cluster, "slow", 1.0) for _ in range(15)]
        assert not cluster.record.timed_out["spout"]
    assert min(rates) >= 0.9 * 500, rates
    assert max(rates) <= 1.1 * 500, rates
