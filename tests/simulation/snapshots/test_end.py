"""A bounded topology ends with a last snapshot, which holds all that was done at the end, too."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.keyed import KeyedState
from ardea.state import Fenced
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.memory_store import MemoryStore
from tests.simulation.snapshots.counted import Count, EffectivelyOnce, Words, tables_of, word
from tests.sizes import size

CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}
ROWS = 60


class Bounded(Words):
    most = ROWS

    def next_tuple(self):
        if self.position >= self.most:
            self.finish()
        super().next_tuple()


class Totals(Count):
    """What it has counted it emits at the end."""

    outputs = ("word", "count")
    heard: list[tuple[str, str, int]] = []

    def initialize(self, config, context):
        self.name = f"{context.this_component_id}-{context.this_task_index}"

    def flush(self):
        Totals.heard.append((self.name, "flushed", 0))

    def snapshot(self, number):
        Totals.heard.append((self.name, "taken", number))

    def end_of_input(self):
        Totals.heard.append((self.name, "end", 0))
        for key, count in sorted(self.counts.items()):
            self.emit((key, count))

    def committed(self, number):
        Totals.heard.append((self.name, "committed", number))

    def close(self):
        Totals.heard.append((self.name, "closed", 0))


class Sums(Bolt):
    sums = KeyedState(default=0)

    def process(self, tup):
        self.sums[tup["word"]] += tup["count"]


class Ends(Topology):
    words = Bounded.spec(par=2)
    count = Totals.spec(par=2, inputs={words: Grouping.fields("word")})
    sums = Sums.spec(par=2, inputs={count: Grouping.fields("word")})


EXPECTED = Counter(word(spout, place) for spout in range(2) for place in range(ROWS))


def run(**options):
    Totals.heard = []
    return Cluster(EffectivelyOnce(Ends), config=CONFIG, cost={"words": 0.02}, **options)


def ended(cluster, within=300.0):
    cluster.run_until(lambda: cluster.over, within)
    assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    last = Inside(cluster).store.records[-1]
    assert last.final
    sums = Counter()
    for tables in tables_of(Inside(cluster).store, last.committed):
        assert not sums.keys() & tables.get("sums", {}).keys()
        sums.update(tables.get("sums", {}))
    assert sums == EXPECTED


def test_the_last_snapshot_holds_what_was_emitted_at_the_end():
    with run(containers=2) as cluster:
        ended(cluster)
        last = Inside(cluster).store.records[-1].committed
    for name in ("count-0", "count-1"):
        mine = [what for who, *what in Totals.heard if who == name]
        assert mine[-5:] == [["end", 0], ["flushed", 0], ["taken", last], ["committed", last], ["closed", 0]]


def test_while_the_last_snapshot_cannot_be_stored_the_topology_waits():
    with run(containers=2) as cluster:
        store = Inside(cluster).store
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        store.full = True
        cluster.advance(20.0)
        assert cluster.state == "ENDING"
        assert all(what != "closed" for _, what, _ in Totals.heard)
        store.full = False
        ended(cluster)


@pytest.mark.parametrize("name", ["words-1", "count-0", "sums-1", "manager-1", "master"])
@pytest.mark.parametrize("after", [0.0, 0.005, 0.02, 0.05])
def test_who_dies_after_the_declaration_is_in_the_end_of_all(name, after):
    with run(containers=2) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        cluster.advance(after)
        if name in cluster.running:
            cluster.kill(name)
        ended(cluster)


@pytest.mark.parametrize("name", ["words-1", "count-0", "sums-1", "manager-1", "master"])
def test_who_dies_after_the_last_snapshot_counts_goes_back_to_it_and_ends(name):
    with run(containers=2) as cluster:
        store = Inside(cluster).store
        cluster.run_until(lambda: store.records and store.records[-1].final, 60)
        last = store.records[-1].committed
        cluster.kill(name)
        ended(cluster)
        assert {record.committed for record in store.records if record.final} == {last}
        assert store.records[-1].timeline == (1 if name == "master" else 2)
        assert cluster.state == "SUCCEEDED"


def test_that_the_end_was_taken_back_outlives_the_master():
    """The next one would end among rows that were not emitted again."""
    with run(containers=2) as cluster:
        store = Inside(cluster).store
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        cluster.kill("sums-0")
        cluster.run_until(lambda: store.records[-1].timeline == 2, 30)
        assert cluster.state == "RUNNING"
        cluster.kill("master")
        ended(cluster)


def test_who_wants_to_leave_as_the_topology_ends_is_emptied_if_that_is_taken_back():
    """Its pod waits to be told for as long as Kubernetes lets it."""
    with run(containers=2) as cluster:
        store = Inside(cluster).store
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        store.full = True
        cluster.evict(2, grace=200.0)
        cluster.advance(1.0)
        store.full = False
        cluster.kill("sums-0")
        cluster.run_until(lambda: cluster.life("manager-2") == 2, 15.0)
        ended(cluster)


@pytest.mark.parametrize(("counts", "forgets"), [(False, False), (False, True), (True, True)])
@pytest.mark.parametrize("dies", [False, True])
def test_the_last_snapshot_is_the_last_one_also_where_its_record_is_lost(counts, forgets, dies, monkeypatch):
    """Its state has all that was done at the end: nothing of that may be done again."""
    with run(containers=2) as cluster:
        store, stored = Inside(cluster).store, []

        def lost(record):
            if not record.final or stored:
                MemoryStore.begin_timeline(store, record)
                return
            stored.append(record.committed)
            if counts:
                MemoryStore.begin_timeline(store, record)
                return
            if forgets:
                cluster.lose_state()
            raise Fenced("there is no term any more")

        monkeypatch.setattr(store, "begin_timeline", lost)
        cluster.run_until(lambda: bool(stored), 60)
        if counts:
            cluster.lose_state()
        if dies:
            cluster.kill("count-0")
        ended(cluster)
        assert [store.records[-1].committed] == stored


def test_a_record_that_is_lost_among_rows_that_come_again_does_not_end_them():
    """The state manager comes back with a copy that says ENDING, of before that was taken back."""
    with run(containers=2) as cluster:
        store = Inside(cluster).store
        cluster.run_until(lambda: cluster.state == "ENDING", 60)
        copy = store.held
        cluster.kill("sums-0")
        cluster.run_until(lambda: store.records[-1].timeline == 2, 30)
        store.execution(copy)
        store.forget_timeline()
        cluster.kill("master")
        ended(cluster)


@pytest.mark.parametrize("seed", range(size(10, 2000, whole=40)))
def test_whoever_dies_whenever(seed):
    dice = random.Random(seed)
    with run(containers=dice.randint(1, 3), seed=seed) as cluster:
        for _ in range(dice.randint(1, 3)):
            cluster.advance(dice.uniform(0.0, 2.0))
            if not cluster.over:
                cluster.kill(dice.choice(cluster.running))
        cluster.run_until(lambda: cluster.state == "ENDING" or cluster.over, 200)
        for _ in range(dice.randint(1, 4)):
            if not cluster.over:
                cluster.advance(dice.choice([0.005, 0.03, 0.5]) * dice.random())
            if not cluster.over:
                cluster.kill(dice.choice(cluster.running))
        ended(cluster)
