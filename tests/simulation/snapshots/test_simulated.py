"""Fault schedules on the whole engine: each committed snapshot is exact, and all rows come to be in one."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest

from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.kit import Schedule
from tests.simulation.schedules import failing, targets
from tests.simulation.snapshots.counted import Diamond, EffectivelyOnce, tables_of
from tests.sizes import size

FIRST, _, LAST = os.environ.get("ARDEA_SEEDS", "").partition(":")
SEEDS = range(int(FIRST or 0), int(LAST or size(100, 100_000, whole=1000)))
FAULTS = 10
SECONDS = 6.0
ROWS = Diamond.rows


def schedule_of(seed):
    """Ten faults at processes, containers and links, while rows flow and snapshots are taken."""
    containers = random.Random(f"containers of {seed}").randint(1, 3)
    return containers, Schedule.seeded(seed, targets(Diamond, containers), faults=FAULTS, seconds=SECONDS)


def exact(store, number):
    """Checks one snapshot; returns the positions of its spouts."""
    positions, passed, seen = {}, 0, Counter()
    for tables in tables_of(store, number):
        if "position" in tables:
            positions[len(positions)] = tables["position"]
        elif "count" in tables:
            passed += tables["count"]
        else:
            assert not seen.keys() & tables.get("seen", {}).keys(), "a key has two owners"
            seen.update(tables.get("seen", {}))
    # Once straight from the spout, once through the bolt between.
    assert seen == {(spout, place): 2 for spout, most in positions.items() for place in range(most)}
    assert passed == sum(positions.values())
    return positions


def run(seed, containers, schedule):
    """Raises what a promise that is broken raises."""
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    cost = {"rows": 0.02, "passed": 0.003, "kept": 0.003}
    options = {"containers": containers, "seed": seed, "config": config, "cost": cost}
    with Cluster(EffectivelyOnce(Diamond), **options, faults=[*schedule.simulated()]) as cluster:
        store, looked, positions = Inside(cluster).store, 0, {}
        while len(positions) < 2 or min(positions.values()) < ROWS:
            assert cluster.time < 400.0, f"only {positions} of {ROWS} rows are in a snapshot"
            assert not cluster.over, f"{cluster.state}: {cluster.reason}"
            cluster.advance(1.0)
            for record in store.records[looked:]:
                if record.committed:
                    now = exact(store, record.committed)
                    assert all(now[spout] >= place for spout, place in positions.items()), "a snapshot goes back"
                    positions = now
            looked = len(store.records)
        deadline = max(cluster.time, *(fault.at + fault.seconds for fault in schedule.faults)) + 30.0
        while lost := unconsumed(cluster):
            assert cluster.time < deadline, f"credit is lost: {lost}"
            cluster.advance(1.0)


def unconsumed(cluster):
    """Managers' channels to tasks where not all that was sent has been consumed: at rest there are none."""
    found = []
    for name in (each for each in cluster.running if each.startswith("manager-")):
        manager = Inside(cluster).process(name).shell.manager
        for task, channel in () if manager is None else manager.rows.channels.items():
            if channel.sent_rows != channel.consumed_rows:
                found.append((name, task, channel.sent_rows, channel.consumed_rows))
    return found


@pytest.mark.soak
@pytest.mark.timeout(20_000)
def test_whatever_happens_each_committed_snapshot_is_exact():
    """Kills, freezes, cuts and delays of every process, container and link, ten a run."""
    assert failing(SEEDS, schedule_of, run) == []
