"""``load_aware``: a task that falls behind gets less, as soon as its way is full."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, Topology
from ardea.testing import Cluster


class Endless(Spout):
    """A tracked row a call."""

    outputs = ["n"]

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        self.emit([self.n], tup_id=self.n)
        self.n += 1


class Sink(Bolt):
    count = 0

    def process(self, tup):
        self.count += 1


class Shared(Topology):
    spout = Endless.spec()
    sink = Sink.spec(par=4, inputs={spout: Grouping.LOAD_AWARE})
    config = {"topology.max.spout.pending": 2000}


def shares(cost, containers):
    """What part of the rows each task gets, once the weights have settled."""
    with Cluster(Shared, containers=containers, cost={"spout": 0.01, **cost}) as cluster:
        counted = []
        for _ in range(2):
            cluster.advance(15)
            counted.append([cluster.task(f"sink-{n}", Sink).count for n in range(4)])
    gained = [after - before for before, after in zip(*counted, strict=True)]
    return [count / sum(gained) for count in gained]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("containers", [1, 2])
def test_a_slow_task_gets_less_than_its_share(containers):
    """Shuffle would hold all to its pace.  With two containers the spout keeps to those of its own, while they can."""
    slow, *others = shares({"sink-0": 0.2}, containers)
    assert slow < 0.1
    assert containers == 2 or min(others) > 0.2


@pytest.mark.thorough
def test_equal_tasks_share_evenly():
    """Nothing is full, so all keep the same weight."""
    assert shares({}, 1) == pytest.approx([0.25] * 4, abs=0.05)
