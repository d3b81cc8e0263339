"""Spouts and bolts that emit many rows at once, effectively once: whoever dies, each row counts once."""

from __future__ import annotations

import random

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import MOST, Count, EffectivelyOnce, Words, check, states, word
from tests.sizes import size


class Many(Words):
    """Seven words a call, as a list or as they are read."""

    def next_tuple(self):
        places = range(self.position, min(self.position + 7, self.most))
        rows = ((word(self._me, place),) for place in places)
        self.emit_many(list(rows) if self.position % 2 else rows)
        self.position += len(places)


class Pass(Bolt):
    outputs = ("word",)

    def process_batch(self, rows):
        self.emit_many(zip(values[0] for values in rows), anchors=None)


class Counted(Topology):
    words = Many.spec(par=2)
    passed = Pass.spec(par=2, inputs=[words])
    count = Count.spec(par=2, inputs={passed: Grouping.fields("word")})
    config = {"topology.executor.batch.rows": 2}


@pytest.mark.parametrize("seed", range(size(2, 200, whole=10)))
def test_each_word_counts_once(seed):
    dice = random.Random(seed)
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    options = {
        "containers": dice.randint(1, 2),
        "seed": seed,
        "config": config,
        "cost": {"words": 0.05, "passed": 0.01},
    }
    with Cluster(EffectivelyOnce(Counted), **options) as cluster:
        store = Inside(cluster).store
        for _ in range(3):
            cluster.advance(dice.uniform(0.3, 2.0))
            cluster.kill(dice.choice([name for name in cluster.running if name.partition("-")[0] in options["cost"]]))
        deadline = cluster.time + 300.0
        while not (store.records and states(store, store.records[-1].committed)[0] == [MOST, MOST]):
            assert cluster.time < deadline, cluster.describe()
            cluster.advance(2.0)
        assert check(store) == [MOST, MOST]
