"""A source's partitions: each row counts once, whoever dies and however many tasks read them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ardea import END, Grouping, Source, SourceSpout, Topology
from ardea.testing import Cluster, RowsSpout
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Count, EffectivelyOnce, tables_of, word
from tests.sizes import size

PARTITIONS, ROWS = 5, 200
CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0, "topology.executor.batch.rows": 8}


class Shelf(Source):
    """Numbered partitions of words; each 40th read fails."""

    outputs = ("word",)
    partitions, rows = PARTITIONS, ROWS

    def __init__(self) -> None:
        self.reads = 0
        self.told: list[dict[str, int]] = []

    def list_partitions(self):
        return [f"shelf {number}" for number in range(self.partitions)]

    def open(self, partition, position):
        return Words(self, int(partition.split()[1]), position or 0)

    def committed(self, positions):
        self.told.append(dict(positions))


class Words:
    def __init__(self, source: Shelf, number: int, place: int) -> None:
        self.source, self.number, self.place = source, number, place

    def read(self, most):
        places = range(self.place, min(self.place + most, self.source.rows))
        self.place += len(places)
        self.source.reads += 1
        if self.source.reads % 40 == 0:
            raise OSError("the shelf shakes, and nobody knows where this reader is")
        return [(word(self.number, place),) for place in places] or END

    def position(self):
        return self.place

    def close(self):
        pass


class Shelved(Topology):
    source = Shelf()
    reads = SourceSpout(source).spec(par=2)
    count = Count.spec(par=2, inputs={reads: Grouping.fields("word")})


def number_of(partition: str) -> int:
    return int(partition.split()[1])


def exact(store, number):
    """Checks one snapshot; returns how much of each partition it covers."""
    positions, counts = {}, Counter()
    for tables in tables_of(store, number):
        for partition, place, _ in tables.get("positions", ()):
            assert partition not in positions, "a partition has two readers"
            positions[partition] = place or 0
        counts.update(tables.get("counts", {}))
    assert counts == Counter(word(number_of(each), p) for each, most in positions.items() for p in range(most))
    return positions


@pytest.mark.parametrize("seed", range(size(5, 1000, whole=50)))
def test_readers_become_three_and_die(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"reads": 0.1}}
    with Cluster(EffectivelyOnce(Shelved), **options) as cluster:
        Shelved.source.told.clear()
        cluster.advance(dice.uniform(0.5, 2.0))
        for tasks in (3, dice.randint(1, 6)):
            request = cluster.update_request(parallelism={"reads": tasks})
            cluster.update(request)
            cluster.advance(dice.random())
            cluster.kill(dice.choice(cluster.running))
            cluster.updated(request)
            cluster.advance(dice.uniform(0.0, 1.0))
        cluster.kill(dice.choice(cluster.running))
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store = Inside(cluster).store
        committed = [exact(store, record.committed) for record in store.records if record.committed]
        assert committed[-1] == {f"shelf {number}": ROWS for number in range(PARTITIONS)}
        known = {(name, place) for positions in committed for name, place in positions.items()}
        told = {at for positions in Shelved.source.told for at in positions.items()}
        assert told <= known, "the source was told what no snapshot has that counts"
        assert dict(sorted(told)) == committed[-1]


class Listed(Topology):
    rows = [(f"w{place % 31}", place) for place in range(600)]
    reads = RowsSpout.of(["word", "place"], rows).spec(par=2)
    count = Count.spec(par=2, inputs={reads: Grouping.fields("word")})


def exact_places(store, number):
    """Checks one snapshot; returns how many rows it covers."""
    covered, counts = [], Counter()
    for tables in tables_of(store, number):
        for which, step, place in tables.get("positions", ()):
            covered += range(which, min(place, len(Listed.rows)), step)
        counts.update(tables.get("counts", {}))
    assert len(covered) == len(set(covered)), "a share has two readers"
    assert counts == Counter(Listed.rows[place][0] for place in covered)
    return len(covered)


@pytest.mark.parametrize("seed", range(size(3, 300, whole=30)))
def test_fixed_rows_are_shared_out_again(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"reads": 0.01}}
    with Cluster(EffectivelyOnce(Listed), **options) as cluster:
        cluster.advance(dice.uniform(0.5, 2.0))
        for tasks in (3, 1, dice.randint(2, 4)):
            request = cluster.update_request(parallelism={"reads": tasks})
            cluster.update(request)
            cluster.advance(dice.random())
            cluster.kill(dice.choice(cluster.running))
            cluster.updated(request)
            cluster.advance(dice.uniform(0.0, 1.0))
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store = Inside(cluster).store
        covered = [exact_places(store, record.committed) for record in store.records if record.committed]
        assert covered[-1] == len(Listed.rows) > covered[0]
