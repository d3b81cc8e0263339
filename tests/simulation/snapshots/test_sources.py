"""A source's partitions: each row counts once, whoever dies and however many tasks read them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ardea import END, Grouping, JsonLines, PositionLost, Source, SourceSpout, Topology
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


@pytest.mark.parametrize("seed", range(size(5, 1000, whole=20)))
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


@pytest.mark.parametrize("updated", [False, True])
def test_a_bounded_source_has_the_partitions_that_were_listed_first_whoever_dies(updated, monkeypatch):
    """With an update it is listed anew, by all tasks."""
    with Cluster(EffectivelyOnce(Shelved), seed=4, config=CONFIG, cost={"reads": 0.1}) as cluster:
        cluster.advance(4.0)
        store = Inside(cluster).store
        assert len(exact(store, store.records[-1].committed)) == PARTITIONS
        monkeypatch.setattr(Shelf, "partitions", PARTITIONS + 2)
        if updated:
            assert cluster.updated(cluster.update_request(parallelism={"reads": 3})).step == "done"
        else:
            for name in ("reads-0", "count-1", "reads-1"):
                cluster.kill(name)
                cluster.advance(3.0)
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        read = exact(store, max(record.committed for record in store.records))
        assert len(read) == (PARTITIONS + 2 if updated else PARTITIONS)


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


@pytest.mark.parametrize("seed", range(size(3, 300, whole=10)))
def test_fixed_rows_are_shared_out_again(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"reads": 0.01}}
    with Cluster(EffectivelyOnce(Listed), **options) as cluster:
        cluster.advance(dice.uniform(0.5, 2.0))
        for tasks in (3, 1, dice.randint(2, 4)):
            if cluster.state != "RUNNING":
                break
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


class Burnt(Shelf):
    """What was read before is lost once somebody goes back."""

    rows = 100_000

    def open(self, partition, position):
        if position:
            raise PositionLost("the shelf has burnt")
        return Words(self, number_of(partition), 0)


def test_a_position_that_is_lost_ends_the_topology_and_is_named():
    reads = SourceSpout(Burnt()).spec("reads")
    body = {"reads": reads, "count": Count.spec(inputs={reads: Grouping.fields("word")})}
    config = {**CONFIG, "topology.executor.batch.rows": 8}
    with Cluster(EffectivelyOnce(type("Burning", (Topology,), body)), config=config, cost={"reads": 0.1}) as cluster:
        cluster.advance(5)
        store = Inside(cluster).store
        assert any(exact(store, store.records[-1].committed).values())
        cluster.kill("count-0")
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.state == "FAILED"
        assert "of partition shelf" in cluster.reason
        assert "is not there any more: the shelf has burnt; rows that were not read yet are gone" in cluster.reason


class Knows(Count):
    said: list = []

    def initialize(self, config, context):
        self.context = context
        self.said.append(("begins", context.rolling_back, context.topology_over))

    def close(self):
        self.said.append(("closes", self.context.rolling_back, self.context.topology_over))


class Known(Topology):
    reads = SourceSpout(Shelf()).spec()
    count = Knows.spec(inputs={reads: Grouping.fields("word")})


def test_a_component_knows_in_close_whether_another_object_goes_on_and_whether_all_is_over():
    Knows.said.clear()
    with Cluster(EffectivelyOnce(Known), config=CONFIG, cost={"reads": 0.02}) as cluster:
        cluster.advance(3)
        cluster.kill("reads-0")
        cluster.run_until(lambda: cluster.over, 300)
        assert cluster.state == "SUCCEEDED"
    begins, goes_back, ends = ("begins", False, False), ("closes", True, False), ("closes", False, True)
    assert Knows.said == [begins, goes_back, begins, ends]


def test_files_are_read_once(tmp_path):
    for number in range(5):
        text = "".join(f'{{"word": "{word(number, place)}"}}\n' for place in range(ROWS))
        (tmp_path / f"{number}.jsonl").write_text(text)
    reads = SourceSpout(JsonLines(tmp_path / "*.jsonl", ["word"])).spec("reads", par=2)
    body = {"reads": reads, "count": Count.spec(inputs={reads: Grouping.fields("word")})}
    with Cluster(EffectivelyOnce(type("Files", (Topology,), body)), config=CONFIG, cost={"reads": 0.02}) as cluster:
        cluster.advance(2)
        cluster.kill("reads-0")
        cluster.run_until(lambda: cluster.over, 300)
        assert cluster.state == "SUCCEEDED"
        store = Inside(cluster).store
        (counts,) = (tables["counts"] for tables in tables_of(store, store.records[-1].committed) if "counts" in tables)
    assert counts == Counter(word(number, place) for number in range(5) for place in range(ROWS))
