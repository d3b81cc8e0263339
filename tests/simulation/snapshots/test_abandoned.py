"""Where no snapshot counts for long, the store does not grow, and the next one that counts is exact."""

from __future__ import annotations

import pytest

from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.instance import SimulatedInstance
from ardea.topology_master.snapshots import Phase
from tests.simulation.snapshots.counted import EffectivelyOnce, Many, check

INTERVAL = 0.5
MOST = 3 * (1 + 51) + 40
"""Files: of three tasks that can store theirs a base and its deltas; and what was written since files were deleted."""


@pytest.fixture
def fails(monkeypatch):
    """What becomes of a file that a task, by its name, is to write; all others write theirs."""
    how, write = {}, SimulatedInstance.write

    def fail(instance, file, content, done):
        if instance.task.name in how:
            how[instance.task.name](done)
        else:
            write(instance, file, content, done)

    monkeypatch.setattr(SimulatedInstance, "write", fail)
    return how


def cluster():
    config = {"topology.stateful.checkpoint.interval.secs": INTERVAL}
    return Cluster(EffectivelyOnce(Many), containers=2, config=config, cost={"words": 0.02})


def commits(topology, more):
    """Until so many snapshots more count."""
    store = Inside(topology).store
    after = len({record.committed for record in store.records}) + more
    topology.run_until(lambda: len({record.committed for record in store.records}) >= after, 120)


def goes_on(topology, fails):
    """The next snapshots are exact, also those that begin from one that counts now."""
    fails.clear()
    commits(topology, 1)
    topology.kill("count-0")
    commits(topology, 2)
    assert min(check(Inside(topology).store)) > 50


@pytest.mark.parametrize("lost", [False, True])
def test_one_task_cannot_store_its_state(fails, lost):
    """In the end the record may be lost, and what the newest list in the store names is read."""
    with cluster() as topology:
        inside = Inside(topology)
        commits(topology, 3)
        fails["count-1"] = lambda done: done(OSError("no space left on device"))
        for _ in range(200):
            topology.advance(INTERVAL)
            assert len(inside.store.files) <= MOST
        assert inside.master.coordination.figures.abandoned > 150
        if lost:
            timeline = inside.store.records[-1].timeline
            topology.lose_state()
            topology.run_until(lambda: inside.store.records[-1].timeline > timeline, 60)
        goes_on(topology, fails)


def test_a_task_dies_in_each_snapshot(fails):
    """Each of them is of another timeline; the master that has begun them is the second one."""
    with cluster() as topology:
        inside = Inside(topology)
        commits(topology, 3)
        topology.kill("master")
        topology.advance(10.0)
        fails["count-1"] = lambda _: None  # the store does not answer
        coordinator, before = inside.master.coordination.snapshots, inside.store.records[-1]
        for _ in range(20):
            topology.run_until(lambda: coordinator.phase is Phase.TAKING and len(coordinator.taking.files) == 3, 120)
            topology.kill("count-1")
            topology.run_until(lambda: coordinator.phase is Phase.RUNNING, 120)
            folders = {name.partition("/")[0] for name in inside.store.files if not name.endswith(".manifest")}
            assert len(folders) <= 5
        assert inside.store.records[-1].timeline - before.timeline >= 20
        assert inside.store.records[-1].committed == before.committed
        goes_on(topology, fails)
