"""A source with partitions: the task that reads one begins where the reader before it stood."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ardea import Grouping, Spout, Topology
from ardea.keyed import ListState
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Count, EffectivelyOnce, tables_of, word
from tests.sizes import size

PARTITIONS, ROWS = 5, 200
CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}


class Reads(Spout):
    outputs = ("word",)
    positions = ListState(share="all")

    def initialize(self, config, context):
        tasks = len(context.component_tasks(context.this_component_id))
        mine = range(context.this_task_index, PARTITIONS, tasks)
        known = dict(map(tuple, self.positions))
        self.positions[:] = [[partition, known.get(partition, 0)] for partition in mine]
        self.turn = 0

    def next_tuple(self):
        left = [at for at in self.positions if at[1] < ROWS]
        if not left:
            self.finish()
            return
        at = left[self.turn % len(left)]
        self.turn += 1
        self.emit((word(at[0], at[1]),))
        at[1] += 1


class Partitioned(Topology):
    reads = Reads.spec(par=2)
    count = Count.spec(par=2, inputs={reads: Grouping.fields("word")})


def exact(store, number):
    """Checks one snapshot; returns how much of each partition it covers."""
    positions, counts = {}, Counter()
    for tables in tables_of(store, number):
        for partition, place in tables.get("positions", ()):
            assert partition not in positions, "a partition has two readers"
            positions[partition] = place
        counts.update(tables.get("counts", {}))
    assert counts == Counter(word(partition, p) for partition, most in positions.items() for p in range(most))
    return positions


@pytest.mark.parametrize("seed", range(size(5, 1000, whole=20)))
def test_readers_become_more_and_less_and_die(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"reads": 0.02}}
    with Cluster(EffectivelyOnce(Partitioned), **options) as cluster:
        cluster.advance(dice.uniform(0.5, 2.0))
        for _ in range(2):
            request = cluster.update_request(parallelism={"reads": dice.randint(1, 6), "count": dice.randint(2, 4)})
            cluster.update(request)
            cluster.advance(dice.random())
            cluster.kill(dice.choice(cluster.running))
            cluster.updated(request)
            cluster.advance(dice.uniform(0.0, 1.0))
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store = Inside(cluster).store
        for record in store.records:
            if record.committed:
                positions = exact(store, record.committed)
        assert positions == dict.fromkeys(range(PARTITIONS), ROWS)
