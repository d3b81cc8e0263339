"""No time passes for ``idle_after`` while a spout may not emit: a slow partition is not idle, and its rows not late."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, TaskState, Timestamps, Topology
from ardea.testing import Cluster, CollectBolt
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import EffectivelyOnce
from tests.simulation.watermarks.test_watermarks import Parted, parted

COST = {"rows": 0.06}
LONG = 60.0


@pytest.fixture
def topology():
    partitions = Parted(fast=[5000.0, None], slow=[*map(float, range(10, 1000)), None])
    return parted(partitions, timestamps=Timestamps("at", lateness=1.0, idle_after=LONG / 2))


def goes_by_the_slower(cluster):
    cluster.advance(5.0)
    watermark = cluster.task("kept-0", CollectBolt).watermark
    return watermark is not None and 10.0 < watermark < 1000.0


def test_before_the_topology_is_activated(topology):
    with Cluster(topology, active=False, cost=COST) as cluster:
        cluster.advance(LONG)
        cluster.activate()
        assert goes_by_the_slower(cluster)


class Stamped(Spout):
    outputs = ("at",)
    timestamps = Timestamps("at", idle_after=LONG / 2)
    first = 10.0
    position = TaskState(default=0)

    def next_tuple(self):
        self.emit((self.first + self.position,))
        self.position += 1


class Fast(Stamped):
    first = 5000.0


class Two(Topology):
    fast = Fast.spec()
    slow = Stamped.spec()
    kept = CollectBolt.spec(inputs=[fast, slow])


def test_before_the_first_snapshot_counts():
    with Cluster(EffectivelyOnce(Two), cost={"fast": 0.06, "slow": 0.5}) as cluster:
        Inside(cluster).store.full = True
        cluster.advance(LONG)
        assert cluster.record.tuples("slow") == []
        Inside(cluster).store.full = False
        cluster.run_until(lambda: len(cluster.record.tuples("slow")) > 3)
        assert goes_by_the_slower(cluster)


class Steady(Spout):
    """A row each 0.05 s, and after it stood still those that it has missed, one a turn."""

    outputs = ("at",)
    timestamps = Timestamps("at", lateness=1.0, idle_after=5.0)

    def initialize(self, config, context):
        self.clock, self.next = context.clock, 0.0

    def next_tuple(self):
        if self.next <= self.clock():
            self.emit((self.next,))
            self.next += 0.05


class Other(Steady):
    pass


class Late(Bolt):
    def initialize(self, config, context):
        self.rows = self.late = 0

    def process(self, tup):
        self.rows += 1
        self.late += self.watermark is not None and tup["at"] < self.watermark


class Stalled(Topology):
    steady = Steady.spec()
    other = Other.spec()
    late = Late.spec(inputs=[steady, other])


def test_a_task_that_stood_still_has_been_silent_until_its_next_row_only():
    """It goes on where it was: nobody has passed it meanwhile, so that its rows are on time."""
    with Cluster(Stalled, seed=3) as cluster:
        cluster.advance(5.0)
        cluster.freeze("steady-0", 8.0)
        cluster.advance(15.0)
        bolt = cluster.task("late-0", Late)
        assert bolt.rows > 700
        assert bolt.late == 0
