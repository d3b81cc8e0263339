"""A ZooKeeper that comes back empty: its clients are let in again, and a topology that runs on is made known to it."""

from __future__ import annotations

import pytest

from ardea.errors import NotFound
from ardea.state import Unavailable, paths
from ardea.state.topologies import status
from ardea.state.zookeeper import ZooKeeperState
from tests.process.engine.running import Running, all_arrived
from tests.process.state.ensemble import Ensemble
from tests.process.waiting import eventually

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster]

PENDING = 500
NODE = "/topologies/wc-1"


@pytest.fixture
def ensemble(tmp_path):
    """One server, to which the test may do what it likes."""
    with Ensemble(tmp_path / "zk") as ensemble:
        yield ensemble


def lose(ensemble):
    for server in ensemble.servers:
        server.kill()
        server.empty()


def is_gone(state):
    try:
        state.get(NODE)
    except Unavailable:  # the servers have hardly begun
        return False
    except NotFound:
        return True
    raise AssertionError("the servers have kept something")


def test_who_has_seen_more_than_the_servers_is_let_in_and_told_that_all_is_gone(ensemble, connect, caplog):
    state = connect(ensemble)
    assert not state.lost()
    state.create(NODE, b"0")
    for version in range(1, 40):
        state.set(NODE, b"", version)
    lease = state.lease("/tmasters/wc-1", b"")
    assert not state.lost()
    lose(ensemble)
    ensemble.start()
    eventually(lambda: is_gone(state), 60, "the new servers answer")
    assert lease.expires_in == 0.0
    assert state.lost()
    assert not state.lost()
    assert "has lost what it held" in caplog.text
    assert state.create(NODE, b"again") == 1
    assert not state.lost()


@pytest.mark.parametrize("victim", ["topology-master", pytest.param("", marks=pytest.mark.thorough)])
def test_a_topology_goes_on_when_its_state_is_lost_under_load_and_nothing_is_missing(root, tmp_path, ensemble, victim):
    with (
        Running("survivors.py:Survivors", tmp_path, state=ensemble.url(root)) as topology,
        ZooKeeperState(ensemble.address(root)) as other,
    ):
        name = topology.run.topology
        topology.running()
        topology.grows("acked", "numbers", 2 * PENDING)
        before = topology.run.status.term
        lives = {each: process["life"] for each, process in topology.processes().items()}
        lose(ensemble)
        if victim:
            topology.kill(victim)
        ensemble.start()
        topology.until(lambda: topology.run.status.term > before, "a master acts in a higher term", 60.0)
        topology.running()
        topology.until(lambda: status(other, name).running, "its keeper has made itself known, too")
        assert other.get(paths.name(status(other, name).name)).data.decode() == name
        assert other.get(paths.term(name)).version == topology.run.status.term
        again = {each for each, process in topology.processes().items() if process["life"] != lives[each]}
        assert again == {"topology-master"}
        for n in (0, 1):
            topology.grows("acked", f"numbers-{n}", 2 * PENDING, 60.0)
        topology.raise_flag("enough")
        outcome = topology.finish()
    all_arrived(topology, outcome)


@pytest.mark.thorough
def test_a_topology_goes_on_with_a_backup_that_is_older_than_its_master(root, tmp_path, ensemble):
    """Since the backup two more masters have acted."""
    [server] = ensemble.servers
    with (
        Running("survivors.py:Survivors", tmp_path, state=ensemble.url(root)) as topology,
        ZooKeeperState(ensemble.address(root)) as other,
    ):
        name = topology.run.topology
        topology.running()
        server.backup(tmp_path / "backup")
        for _ in range(2):
            topology.kill("topology-master")
            before = topology.run.status.term
            topology.until(lambda b=before: topology.run.status.term > b, "another master acts", 60.0)
            topology.running()
        before = topology.run.status.term
        lives = {each: process["life"] for each, process in topology.processes().items()}
        server.kill()
        server.restore(tmp_path / "backup")
        ensemble.start()
        assert other.get(paths.term(name)).version < before
        topology.until(lambda: topology.run.status.term > before, "a master acts in a higher term", 60.0)
        topology.running()
        assert other.get(paths.term(name)).version == topology.run.status.term
        again = {each for each, process in topology.processes().items() if process["life"] != lives[each]}
        assert again == {"topology-master"}
        for n in (0, 1):
            topology.grows("acked", f"numbers-{n}", 2 * PENDING, 60.0)
        topology.raise_flag("enough")
        outcome = topology.finish()
    all_arrived(topology, outcome)
