"""Rows that raise: skipped once they have ended enough timelines, each a dead letter once, and all others counted."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from ardea import Bolt, FailedException, Grouping, Spout, Topology
from ardea.keyed import KeyedState, TaskState
from ardea.testing import Cluster, CollectBolt
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Rows, tables_of

MOST = 120
"""Rows of each spout."""
NAMES = ("rows-0", "rows-1", "count-0", "count-1", "letters-0", "manager-1", "manager-2", "master")


class Numbers(Rows):
    def next_tuple(self):
        if self.position < MOST:
            self.emit((self._me, self.position))
            self.position += 1


def poison(row):
    return row[1] % 40 == 17


def refused(row):
    return row[1] % 30 == 5


class Count(Bolt):
    seen = KeyedState(default=0)

    def process(self, tup):
        row = tup[0], tup[1]
        if refused(row):
            raise FailedException("not this one")
        self.seen[row] += 1
        if poison(row):
            raise ValueError(f"cannot pass {row}")


class Letters(Bolt):
    letters = TaskState(default=())

    def process(self, tup):
        assert (tup["tup_id"], tup["stream"]) == (None, "rows:default")
        self.letters = [*self.letters, list(tup["values"])]


class Poisoned(Topology):
    rows = Numbers.spec(par=2)
    count = Count.spec(par=2, inputs={rows: Grouping.fields("spout", "place")})
    letters = Letters.spec(inputs={count["__dead_letter"]: Grouping.GLOBAL})


CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0, "topology.reliability.mode": "EFFECTIVELY_ONCE"}


def cluster(topology, seed, **options):
    options.setdefault("config", CONFIG)
    return Cluster(topology, containers=2, seed=seed, cost={"rows": 0.02}, **options)


def exact(store, number):
    """Checks one snapshot; returns the positions of its spouts."""
    positions, seen, letters = [], Counter(), Counter()
    for tables in tables_of(store, number):
        if "position" in tables:
            positions.append(tables["position"])
        elif "letters" in tables:
            letters.update(tuple(row) for row in tables["letters"])
        else:
            seen.update(tables.get("seen", {}))
    rows = [(spout, place) for spout, most in enumerate(positions) for place in range(most)]
    assert seen == Counter(row for row in rows if not poison(row) and not refused(row))
    assert letters == Counter(row for row in rows if poison(row) or refused(row))
    return positions


def passed(cluster, within=400.0):
    """Until all rows are in a snapshot that counts, and each one before it is exact."""
    store, looked, positions, deadline = Inside(cluster).store, 0, [], cluster.time + within
    while positions != [MOST, MOST]:
        assert cluster.time < deadline, cluster.describe()
        assert not cluster.over, cluster.reason
        cluster.advance(1.0)
        for record in store.records[looked:]:
            positions = exact(store, record.committed) if record.committed else positions
        looked = len(store.records)


def test_each_row_that_raises_is_a_dead_letter_once_and_all_others_are_counted():
    with cluster(Poisoned, 1) as topology:
        passed(topology)
        timelines = Inside(topology).store.records[-1].timeline
        assert {topology.life(name) for name in topology.names} == {1}
        assert timelines - 1 >= 3, "each of six rows ends three timelines, some of them the same ones"
        assert timelines - 1 <= 6 * 3 + 3


@pytest.mark.sampled(6)
@pytest.mark.parametrize("first", range(0, 12, 2))
def test_schedules(first):
    """Kills of whoever there is, at any time: counts of blame are in the record, so a new master goes on with them."""
    for seed in range(first, first + 2):
        rng = random.Random(seed)
        with cluster(Poisoned, seed) as topology:
            for _ in range(rng.randint(2, 6)):
                name, at = rng.choice((*NAMES, "master", "master")), rng.uniform(0.0, 9.0)
                topology.at(at, lambda it, name=name: name in it.running and it.kill(name))
            passed(topology)


class Once(Spout):
    """Emits what ``content`` has, rows or a batch."""

    outputs = ["key", "n"]
    content = ()
    begun = TaskState(default=False)

    def next_tuple(self):
        if self.begun:
            self.finish()
            return
        self.begun = True
        if isinstance(self.content, pa.RecordBatch):
            self.emit_batch(self.content)
        else:
            for row in self.content:
                self.emit(row)


@pytest.mark.parametrize(
    ("content", "letter"),
    [
        ([("a", 1), ("b", "no number"), ("c", 3)], ["b", "no number"]),
        (pa.record_batch({"key": ["a", "b", "c"], "n": [1, 2**40, 3]}), ["b", 2**40]),
    ],
    ids=["rows", "columns"],
)
def test_a_row_that_does_not_fit_its_columns_is_a_dead_letter_as_it_came(content, letter):
    class Typed(Bolt):
        column_types = {"n": "int32"}
        seen = TaskState(default=0)

        def process_columns(self, columns):
            self.seen += len(columns)

    class Unfit(Topology):
        rows = type("Source", (Once,), {"content": content}).spec()
        typed = Typed.spec(inputs=[rows])
        letters = CollectBolt.spec(inputs=[typed["__dead_letter"]])
        config = CONFIG

    with Cluster(Unfit, seed=1) as topology:
        topology.run_until(lambda: topology.over)
        assert (topology.state, topology.reason) == ("SUCCEEDED", "")
        assert topology.record.inputs("letters") == [(None, "rows:default", letter)]
