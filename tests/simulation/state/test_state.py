"""The state manager of a simulated cluster can be slow, and out of reach, like everything else."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.state import Unavailable
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.inside import Inside
from ardea.testing.memory_store import LEASE

ROWS = 40


class Numbers(Topology):
    numbers = RowsSpout.of(["n"], [[n] for n in range(ROWS)]).spec()
    collect = CollectBolt.spec(inputs=[numbers], par=2)
    config = {"topology.message.timeout.secs": 10}


@pytest.fixture
def cluster():
    with Cluster(Numbers, containers=2, cost={"numbers": 0.1}) as running:
        yield running


def collected(cluster):
    return {n for (n,) in cluster.record.inputs("collect")}


def test_a_slow_state_manager_delays_the_beginning_and_the_end_and_nothing_else(cluster):
    cluster.network.delay("master", "state", 1.0)
    cluster.run_until(lambda: cluster.over)
    assert (cluster.state, cluster.life("master")) == ("SUCCEEDED", 1)
    assert collected(cluster) == set(range(ROWS))


def test_a_master_whose_write_is_not_answered_says_nothing_of_it_and_the_next_one_finds_it(cluster):
    cluster.run_until(lambda: collected(cluster))
    cluster.network.delay("master", "state", 1.0)
    cluster.deactivate()
    assert cluster.state == "PAUSED"  # written, but it does not know
    cluster.network.cut("master", "state")
    told = len(collected(cluster))
    cluster.advance(2.5)
    assert "master" not in cluster.running
    assert len(collected(cluster)) > told + 20, "the spouts have heard nothing"
    before = cluster.life("master")
    cluster.network.heal("master", "state")
    cluster.run_until(lambda: cluster.life("master") > before)
    assert cluster.state == "PAUSED"
    cluster.advance(2.0)
    so_far = collected(cluster)
    cluster.advance(2.0)
    assert collected(cluster) == so_far
    cluster.activate()
    cluster.run_until(lambda: cluster.over)
    assert collected(cluster) == set(range(ROWS))


def test_a_master_without_its_state_manager_refuses_what_it_would_have_to_write(cluster):
    cluster.run_until(lambda: collected(cluster))
    cluster.network.cut("master", "state")
    with pytest.raises(Unavailable):
        cluster.deactivate()
    assert cluster.state == "RUNNING"
    cluster.advance(2.0)
    assert (cluster.life("master"), "master" in cluster.running) == (1, True)


def test_a_master_that_is_cut_off_for_longer_than_its_lease_ends_and_data_flows_on():
    with Cluster(Numbers, containers=2, cost={"numbers": 0.4}) as cluster:  # it has nothing to write meanwhile
        cluster.run_until(lambda: collected(cluster))
        cluster.network.cut("master", "state")
        cluster.advance(LEASE - 1.0)
        assert "master" in cluster.running
        before = len(collected(cluster))
        cluster.advance(3.0)
        assert "master" not in cluster.running
        assert before < len(collected(cluster)) < ROWS
        cluster.network.heal("master", "state")
        cluster.run_until(lambda: cluster.over)
        assert collected(cluster) == set(range(ROWS))


def test_a_manager_that_sees_no_state_keeps_to_the_master_that_it_knew(cluster):
    cluster.run_until(lambda: collected(cluster))
    cluster.network.cut("manager-1", "state")
    cluster.kill("master")
    cluster.advance(2.5)
    assert len(collected(cluster)) > 20
    assert list(Inside(cluster).master.admissions.missing) == [1]
    cluster.network.heal("manager-1", "state")
    cluster.run_until(lambda: cluster.over)
    assert (cluster.state, collected(cluster)) == ("SUCCEEDED", set(range(ROWS)))
