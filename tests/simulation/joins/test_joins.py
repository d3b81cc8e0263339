"""Joins on the real engine, on simulated time: what they promise, whatever dies (docs/joins.md)."""

from __future__ import annotations

import math
import random

import pytest

from ardea.joins import AsOfJoin, IntervalJoin, TableJoin, WindowJoin
from ardea.testing import Cluster, run
from ardea.testing.kit import Schedule
from tests.simulation.joins.joined import MOST, Results, committed, expected, last_versions, topology
from tests.simulation.schedules import targets
from tests.simulation.snapshots.counted import EffectivelyOnce
from tests.sizes import size

SIDES = ("left", "right")
COST = {"left": 0.05, "right": 0.025}
CONFIG = {"topology.stateful.checkpoint.interval.secs": 0.3, "topology.key.groups": 8}
OPTIONS = {"config": CONFIG, "cost": COST, "check": False}
JOINS = {
    "interval": IntervalJoin(*SIDES, on="at", before=0.5, after=1.5, how="outer"),
    "window": WindowJoin(*SIDES, on="at", size=2, how="left"),
    "as-of": AsOfJoin(*SIDES, on="at", within=2, how="left"),
    "table": TableJoin(*SIDES, on="at", how="left"),
}
EXPECTED = {
    "interval": expected(lambda left, right: -0.5 <= round(right - left, 3) <= 1.5, "outer"),
    "window": expected(lambda left, right: left // 2 == right // 2, "left"),
    "as-of": last_versions(2.0),
    "table": last_versions(math.inf),
}


@pytest.fixture(autouse=True)
def nothing_seen():
    Results.seen.clear()


@pytest.mark.parametrize(("mode", "kind", "par"), [
    ("ATLEAST_ONCE", "interval", 3), ("ATMOST_ONCE", "table", 1),
])  # fmt: skip
def test_what_comes_depends_on_keys_and_stamps_alone(mode, kind, par):
    config = {"topology.reliability.mode": mode}
    result = run(topology(JOINS[kind], par), containers=2, seed=par, cost=COST, config=config, check=False)
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    assert sorted(Results.seen, key=str) == sorted(EXPECTED[kind].elements(), key=str)


def exact(kind, seed, containers, par, faults):
    """Raises what a promise that is broken raises."""
    once = EffectivelyOnce(topology(JOINS[kind], par))
    with Cluster(once, containers=containers, seed=seed, faults=faults, **OPTIONS) as cluster:
        cluster.run_until(lambda: cluster.over, timeout=400)
        assert (cluster.state, cluster.reason, cluster.record.exceptions) == ("SUCCEEDED", "", [])
        times, kept = committed(cluster)
    assert times == EXPECTED[kind], "each pair, and each row that is alone, once"
    if kind == "table":
        assert {*kept} <= {(0, 1)}, "a version a key"
    else:
        assert kept == [], "nothing is kept that can belong to nobody"


@pytest.mark.parametrize("seed", range(size(3, 2000, whole=40)))
def test_effectively_once_each_result_comes_once_under_a_schedule_of_faults(seed):
    dice, kind = random.Random(f"containers of {seed}"), [*JOINS][seed % len(JOINS)]
    containers, par = dice.randint(1, 3), dice.randint(1, 3)
    schedule = Schedule.seeded(seed, targets(topology(JOINS[kind], par), containers), faults=4, seconds=2.0)
    exact(kind, seed, containers, par, [*schedule.simulated()])


def test_rows_move_with_their_keys_to_more_tasks():
    with Cluster(EffectivelyOnce(topology(JOINS["interval"])), containers=2, seed=3, **OPTIONS) as cluster:
        cluster.advance(0.8)
        done = cluster.updated(cluster.update_request(parallelism={"joined": 3}))
        assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, timeout=200)
        assert cluster.state == "SUCCEEDED"
        assert committed(cluster) == (EXPECTED["interval"], [])


def test_a_table_without_stamps_gives_each_row_one_answer():
    with Cluster(EffectivelyOnce(topology(TableJoin(*SIDES, how="left"))), seed=5, **OPTIONS) as cluster:
        cluster.at(0.7, lambda _: cluster.kill("joined-1"))
        cluster.run_until(lambda: cluster.over, timeout=200)
        times, kept = committed(cluster)
    assert sorted(left for left, _ in times) == sorted({left for left, _ in EXPECTED["table"]})
    assert {*times.values()} == {1}
    assert len(times) == 2 * MOST
    assert {*kept} == {(0, 1)}
