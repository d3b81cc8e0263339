"""However quick a spout is, no tree times out behind a slow bolt, and what is not slow is not slowed down."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.parts import Endless

SECONDS = 35
"""More than the timeout."""
QUICK = 1e-6
"""Seconds a row: a spout could emit the default of all its pending in 20 ms."""


class Passes(Bolt):
    outputs = ["n"]

    def process(self, tup):
        self.emit([tup["n"]])


class Holds(Bolt):
    """Passes on what it has, once that are so many rows, or the time is over."""

    outputs = ["n"]
    auto_ack = False

    def initialize(self, config, context):
        self.rows = config.get("test.rows", 1e9)
        self.held = []

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) >= self.rows:
            self.process_tick(tup)

    def process_tick(self, tup):
        for each in self.held:
            self.emit([each["n"]], anchors=[each])
            self.ack(each)
        self.held.clear()


class Chain(Topology):
    spout = Endless.spec()
    quick = Passes.spec(inputs=[spout])
    slow = Passes.spec(inputs=[quick])


def acked(cluster, seconds, spout="spout"):
    """Trees a second."""
    before = len(cluster.record.acked[spout])
    cluster.advance(seconds)
    return (len(cluster.record.acked[spout]) - before) / seconds


def broken(cluster):
    record = cluster.record
    return {what: sum(map(len, getattr(record, what).values())) for what in ("failed", "timed_out", "lost")}


def none(**expected):
    return {"failed": 0, "timed_out": 0, "lost": 0, **expected}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("cost", "containers"), [(0.02, 2), (0.002, 2), (0.1, 2), (0.02, 1)])
def test_nothing_times_out_behind_a_slow_bolt_and_that_is_never_idle(cost, containers):
    costs = {"spout": QUICK, "quick": QUICK, "slow": cost}
    with Cluster(Chain, containers=containers, cost=costs, check=False) as cluster:
        cluster.advance(2)
        assert acked(cluster, SECONDS) == pytest.approx(1 / cost, rel=0.05)
        assert broken(cluster) == none()


@pytest.mark.thorough
def test_a_branch_that_is_not_slow_has_its_own_rate():
    class Branches(Chain):
        free = Endless.spec()
        other = Passes.spec(inputs=[free])

    costs = {"spout": QUICK, "slow": 0.02, "free": 0.005, "other": 0.001}
    with Cluster(Branches, containers=2, cost=costs, check=False) as cluster:
        assert acked(cluster, 10, "free") > 0.95 * 200
        assert broken(cluster) == none()


@pytest.mark.thorough
def test_a_slow_bolt_that_becomes_quick_has_its_full_rate_soon():
    with Cluster(Chain, containers=2, cost={"spout": QUICK, "slow": 0.02}, check=False) as cluster:
        cluster.advance(10)
        Inside(cluster).set_cost("slow-0", 0.001)
        cluster.advance(3)
        rates = [acked(cluster, 1.0) for _ in range(5)]
        assert broken(cluster) == none()
    assert min(rates) >= 0.9 * 1000, rates


def test_a_quick_topology_has_its_full_rate_at_once():
    class Quick(Topology):
        spout = Endless.spec()
        quick = Passes.spec(inputs=[spout])

    with Cluster(Quick, containers=2, cost={"spout": 2e-6, "quick": 2e-6}, check=False) as cluster:
        cluster.run_until(lambda: cluster.record.inputs("quick"))
        first, second = acked(cluster, 0.1), acked(cluster, 0.1)
    assert first > 0.75 * second


def test_rows_without_trees_leave_in_large_batches():
    class Untracked(Endless):
        def next_tuple(self):
            self.n += 1
            self.emit([self.n])

    class Free(Topology):
        spout = Untracked.spec()
        quick = Passes.spec(inputs=[spout])

    with Cluster(Free, containers=2, cost={"spout": 2e-6, "quick": 2e-6}, check=False) as cluster:
        cluster.run_until(lambda: cluster.record.inputs("quick"))
        before = len(cluster.record.inputs("quick"))
        cluster.advance(0.1)
        assert len(cluster.record.inputs("quick")) - before > 0.5 * 0.1 / 2e-6


@pytest.mark.thorough
def test_a_window_of_time_holds_what_comes_meanwhile():
    class Windows(Topology):
        spout = Endless.spec()
        window = Holds.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 10})

    with Cluster(Windows, containers=2, cost={"spout": 2e-3}, check=False) as cluster:
        cluster.advance(10.5)
        first = len(cluster.record.acked["spout"])
        cluster.advance(20)
        assert broken(cluster) == none()
        assert first > 3500, "the first window is smaller: the spout could not know that it may fill it"
        assert len(cluster.record.acked["spout"]) - first > 0.97 * 10_000


def test_a_bolt_that_waits_for_many_rows_gets_them_and_a_slow_one_behind_it_is_not_flooded():
    class Batches(Topology):
        spout = Endless.spec()
        holds = Holds.spec(inputs=[spout])
        slow = Passes.spec(inputs=[holds])
        config = {"test.rows": 200}

    with Cluster(Batches, containers=2, cost={"spout": QUICK, "slow": 0.02}, check=False) as cluster:
        cluster.advance(10)
        assert acked(cluster, 15) > 0.9 / 0.02
        assert broken(cluster) == none()


def test_what_is_sent_again_does_not_flood_a_bolt_that_came_back_slow():
    costs = {"spout": QUICK, "quick": QUICK, "slow": 1e-5}
    with Cluster(Chain, containers=2, cost=costs, check=False) as cluster:
        cluster.run_until(lambda: cluster.record.acked["spout"])
        cluster.advance(0.05)
        costs["slow"] = 0.02
        cluster.kill("slow-0")
        cluster.advance(2)
        lost = broken(cluster)["lost"]
        assert lost > 30 / 0.02, "more than it could do within the timeout"
        cluster.advance(SECONDS)
        assert broken(cluster)["timed_out"] < 100, "those that waited behind what was lost and is still on its way"


@pytest.mark.thorough
def test_a_flat_map_between_does_not_hide_how_slow_the_bolt_behind_it_is():
    """What waits in front of the blocked bolts pauses nobody, and a probing spout must not take that for leave."""

    class Ten(Bolt):
        outputs = ["n"]

        def process(self, tup):
            for number in range(10):
                self.emit([tup["n"] + number])

    class Flat(Topology):
        spout = Endless.spec(par=2)
        ten = Ten.spec(par=3, inputs=[spout])
        quick = Passes.spec(par=2, inputs={ten: Grouping.fields("n")})
        slow = Passes.spec(par=2, inputs=[quick])

    costs = {"spout": QUICK, "ten": QUICK, "quick": QUICK, "slow": 0.01}
    with Cluster(Flat, containers=3, cost=costs, check=False) as cluster:
        cluster.advance(5)
        assert acked(cluster, SECONDS) == pytest.approx(2 / 0.01 / 10, rel=0.1)
        assert broken(cluster) == none()
