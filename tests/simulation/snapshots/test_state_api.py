"""What authors do with state, in whole topologies."""

from __future__ import annotations

import random
from collections import Counter

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Timers, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of, word
from tests.simulation.snapshots.counted import Words as Many
from tests.sizes import size

CONFIG = {"topology.stateful.checkpoint.interval.secs": 1.0}


class Words(Spout):
    outputs = ["word"]
    position = TaskState(default=0)

    def next_tuple(self):
        if not self.position:
            self.emit(["heron"])
            self.position = 1


class Dynamic(Bolt):
    def initialize(self, config, context):
        self.counts = [context.keyed_state(f"counts-{n}", default=0) for n in range(2)]

    def process(self, tup):
        for counts in self.counts:
            counts[tup["word"]] += 1


class Named(Topology):
    words = Words.spec()
    count = Dynamic.spec(par=2, inputs={words: Grouping.fields("word")})


class Shuffled(Topology):
    words = Words.spec()
    count = Dynamic.spec(par=2, inputs=[words])


def test_in_a_topology_each_object_asks_again():
    with Cluster(EffectivelyOnce(Named), config=CONFIG) as cluster:
        cluster.advance(3.0)
        cluster.kill("count-0")
        cluster.kill("count-1")
        cluster.advance(3.0)
        held = [cluster.task(f"count-{index}", Dynamic).counts for index in range(2)]
        assert sorted(map(dict, (*held[0], *held[1])), key=len) == [{}, {}, {"heron": 1}, {"heron": 1}]


def test_where_two_tasks_would_own_a_key_asking_fails_the_topology():
    with Cluster(EffectivelyOnce(Shuffled)) as cluster:
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "FAILED"
        assert "keyed state: [counts-0], in 2 tasks, and no input is grouped by fields" in cluster.reason


class Ring(Bolt):
    """Counts words, and says the count of each three seconds after its first one."""

    outputs = ["word", "count"]
    counts = KeyedState(default=0)
    timers = Timers()

    def initialize(self, config, context):
        self._now = context.now
        self.began = context.now()
        self.called = []

    def process(self, tup):
        self.called.append("row")
        if not self.counts[tup["word"]]:
            self.timers.set(tup["word"], self._now() + 3.0)
        self.counts[tup["word"]] += 1

    def on_timer(self, name, key, at):
        assert at <= self._now()
        self.called.append(at)
        self.emit([key, self.counts.pop(key)])


class Total(msgspec.Struct):
    words: int = 0
    rows: list[int] = []


class Sum(Bolt):
    sums = KeyedState(default=Total, type=Total)

    def process(self, tup):
        total = self.sums[tup["word"]]
        total.words += tup["count"]
        total.rows.append(tup["count"])


class Rung(Topology):
    words = Many.spec(par=2)
    ring = Ring.spec(par=2, inputs={words: Grouping.fields("word")})
    total = Sum.spec(par=2, inputs={ring: Grouping.fields("word")})


COST = {"words": 0.02}


def exact(store, number):
    """Checks one snapshot: what waits for its timer and what was said are the words before the positions."""
    positions, counts, sums, timers = [], Counter(), Counter(), []
    for tables in tables_of(store, number):
        if "position" in tables:
            positions.append(tables["position"])
        counts.update(tables.get("counts", {}))
        timers += [key for key, _ in tables.get("timers", {})]
        for key, kept in tables.get("sums", {}).items():
            total = msgspec.msgpack.decode(kept[1:], type=Total)
            assert total.words == sum(total.rows)
            sums[key] += total.words
    assert counts + sums == Counter(word(spout, p) for spout, most in enumerate(positions) for p in range(most))
    assert Counter(timers) == Counter(counts.keys()), "each word that waits has one timer"
    return positions, counts


def check_all(cluster):
    """Until all words were said; each committed snapshot is exact."""
    store, looked, positions, counts = Inside(cluster).store, 0, [], Counter("x")
    deadline = cluster.time + 200.0
    while positions != [Many.most] * 2 or counts:
        assert cluster.time < deadline, cluster.describe()
        cluster.advance(1.0)
        for record in store.records[looked:]:
            if record.committed:
                positions, counts = exact(store, record.committed)
        looked = len(store.records)


@pytest.mark.parametrize("seed", range(size(4, 1000, whole=12)))
def test_timers_and_typed_values_are_part_of_each_snapshot(seed):
    """Whoever dies, and however many tasks there are."""
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": COST}
    with Cluster(EffectivelyOnce(Rung), **options) as cluster:
        for _ in range(4):
            cluster.advance(dice.uniform(0.3, 3.0))
            cluster.kill(dice.choice([name for name in cluster.running if name != "report"]))
        cluster.updated(cluster.update_request(parallelism={"ring": dice.randint(1, 4)}))
        check_all(cluster)


@pytest.mark.parametrize("seconds", [0.0, 0.003], ids=["at once", "in several turns"])
def test_timers_that_are_overdue_are_called_first_once_and_in_their_order(seconds):
    with Cluster(EffectivelyOnce(Rung), config=CONFIG, cost={**COST, "ring": seconds}) as cluster:
        cluster.advance(3.0)
        rings = [f"ring-{index}" for index in range(2)]
        cluster.run_until(lambda: all(cluster.task(name, Ring).timers.next < cluster.time + 0.05 for name in rings))
        for name in rings:
            cluster.kill(name)
        cluster.advance(3.0)
        for name in rings:
            called = cluster.task(name, Ring).called
            overdue = called[: called.index("row")]
            assert len(overdue) > 5
            assert overdue == sorted(overdue)
            assert all(at == "row" or at > cluster.task(name, Ring).began for at in called[len(overdue) :])
        check_all(cluster)


def test_a_quiet_topology_wakes_for_a_timer_and_then_rests_again():
    with Cluster(EffectivelyOnce(Quiet), config=CONFIG) as cluster:
        cluster.advance(2.5)
        ring = cluster.task("ring-0", Ring)
        assert ring.called == ["row"]
        cluster.run_until(lambda: len(ring.called) == 2)
        assert abs(cluster.time - ring.called[1]) < 0.1, "to the point, not when something else comes"
        check = Inside(cluster).store
        former = check.records[-1].committed
        cluster.advance(5.0)
        assert check.records[-1].committed > former, "a timer is a reason to take a snapshot"
        records = len(check.records)
        cluster.advance(20.0)
        assert len(check.records) == records


class Quiet(Topology):
    words = Words.spec()
    ring = Ring.spec(inputs={words: Grouping.fields("word")})
    total = Sum.spec(inputs={ring: Grouping.fields("word")})


class Once(Words):
    def next_tuple(self):
        super().next_tuple()
        if Once.over:
            self.finish()

    over = False


class Bounded(Topology):
    words = Once.spec()
    ring = Ring.spec(inputs={words: Grouping.fields("word")})
    total = Sum.spec(inputs={ring: Grouping.fields("word")})


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "ATMOST_ONCE"])
def test_in_the_other_modes_timers_are_called_too_and_the_topology_ends(mode, monkeypatch):
    monkeypatch.setattr(Once, "over", False)
    with Cluster(Bounded, config={"topology.reliability.mode": mode}) as cluster:
        cluster.advance(6.0)
        assert cluster.task("total-0", Sum).sums == {"heron": Total(1, [1])}
        Once.over = True
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"


class Long(Once):
    """Goes on for as long as it is told to."""


class Brief(Words):
    def next_tuple(self):
        super().next_tuple()
        self.finish()


class Branches(Topology):
    words = Brief.spec()
    ring = Ring.spec(inputs={words: Grouping.fields("word")})
    total = Sum.spec(inputs={ring: Grouping.fields("word")})
    long = Long.spec()
    other = Dynamic.spec(inputs={long: Grouping.fields("word")})


@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_a_bolt_that_rests_is_called_too_and_rests_again(mode, monkeypatch):
    monkeypatch.setattr(Once, "over", False)
    with Cluster(Branches, config={**CONFIG, "topology.reliability.mode": mode}) as cluster:
        cluster.advance(2.0)
        ring = Inside(cluster).executor("ring-0")
        assert ring.reporter.markers.resting
        cluster.advance(4.0)
        assert cluster.task("total-0", Sum).sums == {"heron": Total(1, [1])}
        assert ring.reporter.markers.resting
        Once.over = True
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "SUCCEEDED"


class Raises(Ring):
    mistakes = 0

    def on_timer(self, name, key, at):
        super().on_timer(name, key, at)
        if Raises.mistakes:
            Raises.mistakes -= 1
            raise ValueError("half said")


class Flawed(Topology):
    words = Many.spec(par=2)
    ring = Raises.spec(par=2, inputs={words: Grouping.fields("word")})
    total = Sum.spec(par=2, inputs={ring: Grouping.fields("word")})


def test_an_exception_of_on_timer_takes_all_back_and_the_timer_is_called_again(monkeypatch):
    monkeypatch.setattr(Raises, "mistakes", 2)
    with Cluster(EffectivelyOnce(Flawed), config=CONFIG, cost=COST) as cluster:
        check_all(cluster)
        assert Raises.mistakes == 0
        assert Inside(cluster).store.records[-1].timeline > 1
        assert {cluster.life(name) for name in cluster.names} == {1}


class Columns(Bolt):
    outputs = ["word", "count"]
    totals = KeyedState(default=0)

    def process_columns(self, columns):
        new = self.totals.fold(columns["word"], None, "count")
        self.emit_batch(pa.record_batch({"word": list(new), "count": list(new.values())}), anchors=())


class Latest(Bolt):
    latest = KeyedState(default=0)

    def process_columns(self, columns):
        assert pc.all(pc.less(self.latest.get_many(columns["word"]), columns["count"])).as_py()
        self.latest.put_many(columns["word"], columns["count"])


class Batches(Topology):
    words = Many.spec(par=2)
    count = Columns.spec(par=2, inputs={words: Grouping.fields("word")})
    latest = Latest.spec(par=2, inputs={count: Grouping.fields("word")})


@pytest.mark.parametrize("seed", range(size(2, 200, whole=5)))
def test_many_rows_at_once_are_counted_exactly_too(seed):
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": COST}
    with Cluster(EffectivelyOnce(Batches), **options) as cluster:
        store, positions, dies = Inside(cluster).store, [], 4
        while positions != [Many.most] * 2:
            assert cluster.time < 200.0, cluster.describe()
            cluster.advance(dice.uniform(0.3, 3.0))
            if dies:
                dies -= 1
                cluster.kill(dice.choice([name for name in cluster.running if name != "report"]))
            positions, tables = [], {"totals": Counter(), "latest": Counter()}
            for found in tables_of(store, store.records[-1].committed) if store.records[-1].committed else ():
                positions += [found["position"]] if "position" in found else []
                for name in tables:
                    tables[name].update(found.get(name, {}))
            words = Counter(word(spout, p) for spout, most in enumerate(positions) for p in range(most))
            assert tables == {"totals": words, "latest": words}
