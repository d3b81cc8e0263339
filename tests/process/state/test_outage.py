"""Processes that die while every ZooKeeper server is gone."""

from __future__ import annotations

import statistics
import time

import pytest

from tests.machine import patient
from tests.process.engine.running import Running, all_arrived
from tests.process.state.ensemble import Ensemble

pytestmark = [pytest.mark.thorough, pytest.mark.zookeeper, pytest.mark.cluster, pytest.mark.alone]

PENDING = 500
BOLTS = ("through-0", "through-1")
VICTIMS = (*BOLTS, "numbers-1", "container-1/stream-manager", "container-2/metrics-manager")
SOON = 2.0
"""Seconds, of the median, on a quick machine."""


def test_what_dies_while_zookeeper_is_gone_comes_back_and_nothing_is_missing(root, tmp_path):
    """Tasks and managers at once, the master with the servers; data flows on in between."""
    with (
        Ensemble(tmp_path / "zk") as ensemble,
        Running("survivors.py:Survivors", tmp_path, state=ensemble.url(root)) as topology,
    ):
        topology.running()
        topology.grows("acked", "numbers", 2 * PENDING)
        before = topology.run.status.term
        for server in ensemble.servers:
            server.kill()
        former = topology.kill("topology-master")
        took = []
        for victim in VICTIMS:
            since = time.monotonic()
            life = topology.kill(victim)
            if victim in BOLTS:
                took.append(began(topology, victim, since) - since)
            topology.returned(victim, life)
            flows(topology)
        print(f"kill -9 of a bolt: its next life processed a row after {took} s")
        assert statistics.median(took) < patient(SOON)
        assert topology.run.status.term == before
        ensemble.start()
        topology.until(lambda: topology.run.status.term > before, "a master acts", 60.0)
        topology.running()
        lives = {name: process["life"] for name, process in topology.processes().items()}
        assert lives.pop("topology-master") > former
        assert {name for name, life in lives.items() if life > 1} == set(VICTIMS)
        for n in (0, 1):
            topology.grows("acked", f"numbers-{n}", 2 * PENDING, 60.0)
            topology.grows("executed", f"through-{n}", 2 * PENDING, 60.0)
        topology.raise_flag("enough")
        outcome = topology.finish()
    all_arrived(topology, outcome)


def began(topology: Running, bolt: str, since: float) -> float:
    """Waits until a later life than those up to ``since`` has processed a row; returns when it did."""
    file = topology.out / f"began-{bolt.rpartition('-')[2]}"
    return topology.until(lambda: (at := float(file.read_text() or 0)) > since and at, f"{bolt} works again")


def flows(topology: Running) -> None:
    """Waits until both spouts have got acks for more than could be open; there is no master to ask."""
    files = [topology.out / f"position-{n}" for n in (0, 1)]
    goals = [int(file.read_text()) + 3 * PENDING for file in files]
    topology.until(
        lambda: all(int(file.read_text()) >= goal for file, goal in zip(files, goals, strict=True)),
        "tuples of both spouts are acked",
        60.0,
    )
