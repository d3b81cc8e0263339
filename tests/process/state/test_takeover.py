"""Masters on a real ZooKeeper: who follows one that dies or stands still, and how soon."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time

import pytest

from ardea.state import open_state, paths, records
from ardea.state.records import MasterLocation
from tests.process.engine.running import Running
from tests.process.state.ensemble import CLOSE_SESSION, Server

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster, pytest.mark.alone]

SESSION = 8.0
AFTER_IT = 5.0
"""Seconds in which a standby has to act once the session has timed out (design)."""


def test_the_next_life_of_a_killed_master_does_not_wait_for_its_session(server, root, tmp_path):
    """Three times, with tuples in flight; each has a higher term, and nobody else notices."""
    with Running("survivors.py:Survivors", tmp_path, state=server.url(root)) as topology:
        topology.running()
        topology.grows("acked", "numbers", 1000)
        for _ in range(3):
            removed = leases_removed(topology)
            before, begun = topology.run.status.term, time.monotonic()
            life = topology.kill("topology-master")
            topology.until(lambda: acts(topology, before), "its next life acts", 3 * SESSION)  # noqa: B023
            print(f"the next life acts after {time.monotonic() - begun:.1f} s")
            if time.monotonic() - begun < SESSION - 1:  # else the lease may have been free by then
                topology.until(lambda: leases_removed(topology) > removed, "it has removed its former life's lease")  # noqa: B023
            topology.returned("topology-master", life)
            topology.grows("acked", "numbers", 1000)
        assert leases_removed(topology), "no next life has removed its former life's lease"
        lives = {name: process["life"] for name, process in topology.processes().items()}
        assert {name for name, life in lives.items() if life > 1} == {"topology-master"}
        topology.raise_flag("enough")
        topology.finish()


@pytest.mark.thorough
def test_a_standby_acts_soon_after_the_session_of_a_frozen_master(server, root, tmp_path):
    """The frozen one wakes up, finds its lease gone, and stands by in its next life.

    How soon, the servers' log says: from the end of the session to the new master's word of where it is.
    """
    settings = {"heron.topology.master.replicas": 2}
    with Running("survivors.py:Survivors", tmp_path, settings, state=server.url(root)) as topology:
        topology.running()
        topology.grows("acked", "numbers", 1000)
        before, former = topology.run.status.term, acting(topology)
        (zookeeper,), lease = server.servers, paths.master(topology.run.topology).encode()
        *_, session = (t.session for t in zookeeper.transactions() if lease in t.body)
        life = topology.kill(former, signal.SIGSTOP)
        pid = topology.pid(former)
        try:
            topology.until(lambda: acts(topology, before), "the standby acts", 10 * SESSION)
        finally:
            with contextlib.suppress(ProcessLookupError):  # after ten seconds its supervisor has killed it
                os.kill(pid, signal.SIGCONT)
        took = takeover(zookeeper, session, lease)
        print(f"the standby acts {took:.2f} s after the session has timed out")
        assert 0.0 < took < AFTER_IT
        topology.returned(former, life)
        assert acting(topology) != former
        topology.grows("acked", "numbers", 1000)
        topology.raise_flag("enough")
        topology.finish()


def leases_removed(topology: Running) -> int:
    """How often a master has said that it removed the lease of its former life."""
    return topology.log("topology-master").count("the lease of this process' former life is removed")


def acts(topology: Running, former_term: int) -> bool:
    """Whether a master of a higher term has answered."""
    return topology.run.status.term > former_term


def takeover(server: Server, session: int, lease: bytes) -> float:
    """Seconds from a session's end to the second write of the lease since: the first takes it, then it names a term."""
    transactions = server.transactions()
    ended = next(t.time for t in transactions if (t.session, t.kind) == (session, CLOSE_SESSION))
    _, acts = itertools.islice((t.time for t in transactions if lease in t.body), 2)
    return acts - ended


def acting(topology: Running) -> str:
    """The master that the state names."""
    path = paths.master(topology.run.topology)
    with open_state(topology.run.submission.definition.state) as state:
        pid = records.decode(state.get(path).data, MasterLocation, path).pid
    return next(name for name in ("topology-master", "topology-master-2") if topology.pid(name) == pid)
