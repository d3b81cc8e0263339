"""Windows by number, and the one of a key: exact and in order in EFFECTIVELY_ONCE, whatever dies (docs/windows.md)."""

from __future__ import annotations

import random

import pytest

from ardea import Bolt, Grouping, KeyedState, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.kit import Schedule
from ardea.windows import CountSliding, CountTumbling, Global, WindowBolt
from tests.simulation.schedules import targets
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of
from tests.simulation.watermarks.timed import Stamped
from tests.simulation.windows.test_windows import COST
from tests.sizes import size

MOST = (100, 40)
"""Rows of each spout: the key of one is quiet while that of the other goes on."""


class Rows(Stamped):
    def initialize(self, config, context):
        super().initialize(config, context)
        self.most = MOST[self._me]


class Places(WindowBolt):
    outputs = ("spout", "firing", "places")

    def on_window(self, key, window, value):
        self.emit((key, window.firing, [place for _, place, _ in value]))


class Sevens(Places):
    windows = CountTumbling(7)


class LastTen(Places):
    windows = CountSliding(10, 3)


class All(Places):
    windows = Global(rows=40)


class Kept(Bolt):
    """The windows of each spout, with their numbers in the order in which they came."""

    count = KeyedState(default=0)
    seen = KeyedState(default="")

    def process(self, tup):
        self.seen[tup["spout"], self.count[tup["spout"]]] = f"{tup['firing']} {tup['places']}"
        self.count[tup["spout"]] += 1


def topology(kind):
    class Made(Topology):
        rows = Rows.spec(par=2)
        windows = kind.spec(par=2, inputs={rows: Grouping.fields("spout")})
        results = Kept.spec(inputs={windows: Grouping.fields("spout")})

    return Made


def windows_of(kind, places):
    """What plain Python makes of the rows of a key."""
    if kind is Sevens:
        return [("on time", places[start : start + 7]) for start in range(0, len(places), 7)]
    if kind is LastTen:
        ends = [*range(3, len(places), 3), len(places)]  # the last has the rest
        return [("on time", places[max(0, end - 10) : end]) for end in ends]
    return [("early", places[:end]) for end in range(40, len(places) + 1, 40)] + [("on time", places)]


KINDS = (Sevens, LastTen, All)


def exact(kind, seed, containers, faults, parallelism=None):
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    options = {"containers": containers, "seed": seed, "config": config, "cost": COST}
    with Cluster(EffectivelyOnce(topology(kind)), **options, faults=faults) as cluster:
        if parallelism is not None:
            cluster.advance(3.0)
            done = cluster.updated(cluster.update_request(parallelism={"windows": parallelism}))
            assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, timeout=400)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store, seen = Inside(cluster).store, {}
        for tables in tables_of(store, store.records[-1].committed):
            seen.update(tables.get("seen", {}))
    assert seen == {
        (spout, number): f"{firing} {places}"
        for spout, most in enumerate(MOST)
        for number, (firing, places) in enumerate(windows_of(kind, [*range(most)]))
    }


kinds_of_windows = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("name", ["windows-1", "manager-2"])
@kinds_of_windows
def test_rows_are_in_their_windows_in_order_whoever_dies(kind, name):
    exact(kind, 10, 2, [(4.0, lambda cluster: cluster.kill(name))])


@pytest.mark.parametrize("seed", range(size(3, 2000, whole=30)))
def test_rows_are_in_their_windows_in_order_under_a_schedule_of_faults(seed):
    kind = KINDS[seed % len(KINDS)]
    containers = random.Random(f"containers of {seed}").randint(1, 3)
    schedule = Schedule.seeded(seed, targets(topology(kind), containers), faults=6, seconds=6.0)
    exact(kind, seed, containers, [*schedule.simulated()])


@pytest.mark.parametrize("parallelism", [1, 3])
@kinds_of_windows
def test_other_tasks_go_on_with_the_windows_of_their_keys(kind, parallelism):
    exact(kind, 7, 2, [], parallelism)
