"""Who keeps a topology's processes, when the state forgets it."""

from __future__ import annotations

import pytest

from ardea.scheduler.keeper_lease import FORGOTTEN
from ardea.state import paths
from ardea.state.records import RunState
from ardea.state.topologies import remove, status
from tests.process.engine.running import Running
from tests.process.state.test_zookeeper import expire

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster, pytest.mark.alone]


@pytest.fixture
def topology(server, root, tmp_path):
    with Running("survivors.py:Survivors", tmp_path, state=server.url(root)) as topology:
        topology.running()
        topology.grows("acked", "numbers", 1000)
        yield topology


def ended(topology):
    """Steps it until its last process is gone."""
    while not topology.run.over:
        topology.run.step()
    return topology.run.outcome()


def test_an_expired_lease_is_taken_again_and_nobody_is_started_again(topology, connect, server):
    other, name = connect(server), topology.run.topology
    for _ in range(2):
        before = topology.processes()
        expire(topology.run._registration.state, server)
        assert not other.exists(paths.scheduler(name))
        topology.until(lambda: other.exists(paths.scheduler(name)), "the lease is taken again")
        assert status(other, name).running
        topology.grows("acked", "numbers", 1000)
        assert topology.processes() == before
    topology.raise_flag("enough")
    topology.finish()


@pytest.mark.thorough
def test_a_topology_that_was_removed_meanwhile_ends(topology, connect, server):
    """By a submit of its name, or a kill, which took it for dead."""
    other, name = connect(server), topology.run.topology
    remove(other, name)
    outcome = ended(topology)
    assert (outcome.state, outcome.reason) == (RunState.FAILED, FORGOTTEN)
    topology.run.close()
    assert not other.exists(paths.scheduler(name))
    assert not other.exists(paths.topology(name))
