"""Windows on the real engine, on simulated time: exact in EFFECTIVELY_ONCE, whatever dies (docs/windows.md)."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pyarrow as pa
import pytest

from ardea import Bolt, Grouping, KeyedState, Spout, Stream, TaskState, Timestamps, Topology
from ardea.testing import Cluster, CollectBolt, run, run_bolt
from ardea.testing.inside import Inside
from ardea.testing.kit import Schedule
from ardea.windows import (
    Count,
    CountTumbling,
    First,
    Fold,
    Folds,
    Global,
    Last,
    Max,
    Mean,
    Min,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowBolt,
)
from tests.simulation.schedules import targets
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of
from tests.simulation.watermarks.timed import Stamped, stamps
from tests.sizes import size

COST = {"rows": 0.06}
MODES = ["ATLEAST_ONCE", "ATMOST_ONCE"]
SPOUTS = range(2)


class Counts(WindowBolt):
    outputs = ("spout", "start", "count", "at")

    def on_window(self, key, window, value):
        assert self.watermark >= window.end
        self.emit((key, window.start, value, window.stamp))


class Fixed(Counts):
    windows = Tumbling(5, on="at", fold=Count())


class Slid(Counts):
    windows = Sliding(6, 2, on="at", fold=Count(), offset=1)


class Visits(Counts):
    windows = Session(0.7, on="at", fold=Count())


class Results(Bolt):
    """Rows of each window, and how often it came; none comes late."""

    rows = KeyedState(default=0)
    times = KeyedState(default=0)

    def process(self, tup):
        assert self.watermark is None or tup["at"] >= self.watermark, "a result comes late"
        self.rows[tup["spout"], tup["start"]] += tup["count"]
        self.times[tup["spout"], tup["start"]] += 1


def topology(kind):
    class Made(Topology):
        rows = Stamped.spec(par=2)
        windows = kind.spec(par=2, inputs={rows: Grouping.fields("spout")})
        results = Results.spec(par=2, inputs={windows: Grouping.fields("spout", "start")})

    return Made


def of_panes(length, every, offset=0):
    expected = Counter()
    for spout in SPOUTS:
        for at in stamps(spout, Stamped.most):
            start = (at - offset) // every * every + offset
            while start > at - length:
                expected[spout, start] += 1
                start -= every
    return expected


def of_sessions(gap):
    expected = Counter()
    for spout in SPOUTS:
        start = last = None
        for at in sorted(round(at, 6) for at in stamps(spout, Stamped.most)):
            start = at if last is None or at - last >= gap else start
            last = at
            expected[spout, start] += 1
    return expected


KINDS = {Fixed: lambda: of_panes(5, 5), Slid: lambda: of_panes(6, 2, 1), Visits: lambda: of_sessions(0.7)}
kinds_of_windows = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@pytest.mark.parametrize("mode", MODES)
@kinds_of_windows
def test_windows_are_those_of_plain_python(kind, mode):
    config = {"topology.reliability.mode": mode}
    result = run(topology(kind), containers=2, seed=9, cost=COST, config=config)
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    found = Counter({(spout, start): count for spout, start, count, _ in result.tuples("windows")})
    assert found == KINDS[kind]()
    assert len(found) == len(result.tuples("windows"))


def exact(kind, seed, containers, faults, made=topology, cost=COST):
    """Raises what a promise that is broken raises; ``made``: the topology with windows of this kind."""
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    options = {"containers": containers, "seed": seed, "config": config, "cost": cost}
    with Cluster(EffectivelyOnce(made(kind)), **options, faults=faults) as cluster:
        cluster.run_until(lambda: cluster.over, timeout=400)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store, rows, times, left = Inside(cluster).store, {}, {}, {}
        for tables in tables_of(store, store.records[-1].committed):
            rows.update(tables.get("rows", {}))
            times.update(tables.get("times", {}))
            left.update(tables.get("_windows", {}))
    assert rows == KINDS[kind](), "all rows of each window"
    assert {*times.values()} == {1}, "each window once"
    assert left == {}, "nothing is kept for ever"


@pytest.mark.parametrize("name", ["windows-1", "manager-2"])
def test_effectively_once_windows_are_exact_whoever_dies(name):
    exact(Slid, 10, 2, [(3.0, lambda cluster: cluster.kill(name))])


@pytest.mark.parametrize("seed", range(size(3, 2000, whole=30)))
def test_effectively_once_windows_are_exact_under_a_schedule_of_faults(seed):
    kind = list(KINDS)[seed % len(KINDS)]
    containers = random.Random(f"containers of {seed}").randint(1, 3)
    schedule = Schedule.seeded(seed, targets(topology(kind), containers), faults=6, seconds=6.0)
    exact(kind, seed, containers, [*schedule.simulated()])


def test_other_tasks_go_on_with_the_windows_of_their_keys():
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    with Cluster(EffectivelyOnce(topology(Slid)), containers=2, seed=7, config=config, cost=COST) as cluster:
        cluster.advance(4.0)
        done = cluster.updated(cluster.update_request(parallelism={"windows": 3}))
        assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, timeout=300)
        store, rows = Inside(cluster).store, {}
        for tables in tables_of(store, store.records[-1].committed):
            rows.update(tables.get("rows", {}))
    assert rows == of_panes(6, 2, 1)


# --- many windows at once ---------------------------------------------------------------------------------------------


class ManyKeys(Spout):
    """3,000 keys in one minute, and one row of the next."""

    outputs = ("key", "at")
    timestamps = Timestamps("at")
    keys = 3000

    def initialize(self, config, context):
        self._next = 0

    def next_tuple(self):
        rows = range(self._next, min(self._next + 100, self.keys))
        self._next += 100
        if rows:
            self.emit_many([(key, 1.0) for key in rows])
        else:
            self.emit((0, 100.0))
            self.finish()


class Slow(WindowBolt):
    outputs = ("key", "count", "at")
    windows = Tumbling("1 min", on="at", fold=Count())

    def on_window(self, key, window, value):
        self.emit((key, value, window.stamp))


class InOrder(Bolt):
    def process(self, tup):
        if tup["at"] < 60.0:
            assert self.watermark is None or self.watermark < 60.0, "the watermark comes ahead of its windows"


def test_the_watermark_is_told_once_all_windows_that_it_ends_were_seen_in_slices():
    class Made(Topology):
        rows = ManyKeys.spec()
        windows = Slow.spec(inputs={rows: Grouping.fields("key")})
        after = InOrder.spec(inputs=[windows])

    result = run(Made, cost={"windows": 0.00001}, config={"topology.reliability.mode": "ATMOST_ONCE"})
    assert (result.state, len(result.tuples("windows"))) == ("SUCCEEDED", 3001)
    assert result.record.exceptions == []


class Counted(Slow):
    """``sizes``: keys of each call."""

    sizes: list = []

    def on_windows(self, window, keys, values):
        self.sizes.append(len(keys))
        super().on_windows(window, keys, values)


@pytest.mark.parametrize(("cost", "most"), [(0.001, 16), (1e-9, 1000)])
def test_as_many_windows_are_seen_at_once_as_take_some_milliseconds(cost, most):
    class Made(Topology):
        rows = ManyKeys.spec()
        windows = Counted.spec(inputs={rows: Grouping.fields("key")})

    Counted.sizes.clear()
    assert run(Made, cost={"windows": cost}).state == "SUCCEEDED"
    assert (sum(Counted.sizes), max(Counted.sizes)) == (3001, most)


# --- late rows, folds, and what is refused ----------------------------------------------------------------------------


class Given(Spout):
    """Rows as they stand there, each with what is waited for first."""

    outputs = ("key", "value", "at")
    timestamps = Timestamps("at")
    given: list = []

    def initialize(self, config, context):
        self._left = list(self.given)

    def next_tuple(self):
        if self._left:
            self.emit(self._left.pop(0))
        else:
            self.finish()


def seen(kind, rows):
    """(on the default stream, on ``late``) of a bolt with such windows; a row each 0.3 s."""

    class Bolt(WindowBolt):
        outputs = ("key", "start", "firing", "value", Stream(Given.outputs, "late"))
        windows = kind

        def on_window(self, key, window, value):
            self.emit((key, window.start, window.firing, value))

    class Made(Topology):
        source = type("Rows", (Given,), {"given": rows}).spec()
        windows = Bolt.spec(inputs={source: Grouping.fields("key")})

    result = run(Made, cost={"source": 0.3}, config={"topology.executor.batch.rows": 1})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    return result.tuples("windows"), result.tuples("windows", "late")


def test_rows_that_are_late_or_have_no_stamp_go_to_late_once():
    rows = [("a", 1, 3.0), ("a", 2, 25.0), ("a", 3, 4.0), ("a", 4, None), ("a", 5, "x"), ("a", 6, 24.0)]
    on_time, late = seen(Tumbling(10, on="at", fold=Sum("value")), rows)
    assert on_time == [("a", 0.0, "on time", 1), ("a", 20.0, "on time", 8)]
    assert late == [("a", 3, 4.0), ("a", 4, None), ("a", 5, "x")]


def test_a_row_that_is_allowed_has_its_window_seen_again():
    rows = [("a", 1, 3.0), ("a", 2, 15.0), ("a", 3, 4.0), ("a", 4, 25.0), ("a", 5, 5.0), ("a", 6, 31.0)]
    on_time, late = seen(Tumbling(10, on="at", fold=Sum("value"), allowed_lateness=10), rows)
    assert on_time[:2] == [("a", 0.0, "on time", 1), ("a", 0.0, "late", 4)]
    assert [row for row in on_time if row[1] == 0.0] == on_time[:2]
    assert late == [("a", 5, 5.0)]


def test_a_window_with_new_rows_is_seen_early_too():
    rows = [("a", place, place * 1.0) for place in range(9)] + [("a", 9, 12.0)]
    on_time, _ = seen(Tumbling(10, on="at", fold=Count(), early=1), rows)
    firings = [(firing, count) for _, start, firing, count in on_time if start == 0.0]
    assert firings[-1] == ("on time", 9)
    early = [count for firing, count in firings[:-1]]
    assert {firing for firing, _ in firings[:-1]} == {"early"}
    assert early == sorted(set(early))
    assert 1 <= len(early) <= 4


class Longest(Fold):
    """An author's own."""

    def zero(self):
        return ""

    def add(self, value, row):
        assert row["key"] == "a"
        return max(value, row["value"], key=len)

    def result(self, value):
        return len(value)


def test_folds():
    rows = [("a", 3, 1.0), ("a", None, 2.0), ("a", 8, 3.0), ("a", 4, 4.0)]
    several = Folds(
        count=Count(), sum=Sum("value"), min=Min("value"), max=Max("value"),
        mean=Mean("value"), first=First("value"), last=Last("value"),
    )  # fmt: skip
    expected = {"count": 4, "sum": 15, "min": 3, "max": 8, "mean": 5.0, "first": 3, "last": 4}
    for kind in (
        Tumbling(10, on="at", fold=several),
        Session(5, on="at", fold=several),
        Sliding(10, 10, on="at", fold=several),
    ):
        assert seen(kind, rows)[0] == [("a", pytest.approx(0.0, abs=1.0), "on time", expected)]
    assert seen(Tumbling(10, on="at"), rows)[0] == [("a", 0.0, "on time", rows)]
    assert seen(CountTumbling(4, fold=several), rows)[0] == [("a", None, "on time", expected)]
    words = [("a", word, 1.0) for word in ("x", "long", "no")]
    assert seen(Tumbling(10, on="at", fold=Longest()), words)[0] == [("a", 0.0, "on time", 4)]


class Prices(Spout):
    outputs = ("key", "price", "at")
    timestamps = Timestamps("at")
    place = TaskState(default=0)

    def next_tuple(self):
        if self.place == 60:
            self.finish()
            return
        self.place += 1
        self.emit(("a", "free" if self.place == 30 else 1, float(self.place)))


class Totals(WindowBolt):
    outputs = ("key", "start", "total")
    windows = Tumbling(10, on="at", fold=Sum("price"))

    def on_window(self, key, window, value):
        self.emit((key, window.start, value))


def test_effectively_once_a_row_that_the_fold_cannot_add_is_a_dead_letter_and_all_others_are_added():
    class Made(Topology):
        rows = Prices.spec()
        windows = Totals.spec(inputs={rows: Grouping.fields("key")})
        letters = CollectBolt.spec(inputs=[windows["__dead_letter"]])

    result = run(EffectivelyOnce(Made), cost={"rows": 0.02})
    assert result.state == "SUCCEEDED"
    totals = {start: total for _, start, total in result.tuples("windows")}
    assert totals == {0.0: 9, 10.0: 10, 20.0: 10, 30.0: 9, 40.0: 10, 50.0: 10, 60.0: 1}
    letters = {tuple(row[-1]) for row in result.inputs("letters")}
    assert letters == {("a", "free", 30.0)}


class Columns(Spout):
    """The rows of a test, as one record batch or row by row."""

    outputs = ("key", "value", "at")
    timestamps = Timestamps("at")
    whole = True
    given: list = []

    def initialize(self, config, context):
        self._left = [self.given[start : start + 5] for start in range(0, len(self.given), 5)]

    def next_tuple(self):
        if not self._left:
            self.finish()
            return
        rows = self._left.pop(0)
        if self.whole:
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            self.emit_batch(pa.RecordBatch.from_arrays(columns, names=list(self.outputs)))
        else:
            self.emit_many(rows)


def columns_or_rows(kind, rows, whole):
    class Bolt(WindowBolt):
        outputs = ("key", "start", "firing", "value", Stream(Columns.outputs, "late"))
        windows = kind

        def on_windows(self, window, keys, values):
            self.emit_many(
                [(key, window.start, window.firing, repr(value)) for key, value in zip(keys, values, strict=True)]
            )

    class Made(Topology):
        rows_ = type("Rows", (Columns,), {"given": rows, "whole": whole}).spec("rows")
        windows = Bolt.spec(inputs={rows_: Grouping.fields("key")})

    result = run(Made, cost={"rows": 0.1}, config={"topology.executor.batch.rows": 5})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    return sorted(result.tuples("windows")), sorted(map(repr, result.tuples("windows", "late")))


EVERY_FOLD = Folds(
    count=Count(), sum=Sum("value"), min=Min("value"), max=Max("value"),
    mean=Mean("value"), first=First("value"), last=Last("value"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
def test_columns_are_in_the_same_windows_as_rows(seed):
    chance = random.Random(seed)
    stamps = [None, *[float(place) + chance.randint(-12, 12) for place in range(60)]]
    rows = [(chance.choice("abc"), chance.choice([None, 1, 2, 7]), at) for at in stamps]
    kinds = [
        Tumbling(10, on="at", fold=EVERY_FOLD, allowed_lateness=chance.choice([0, 5])),
        Sliding(9, 6, on="at", fold=EVERY_FOLD, offset=2),
    ]
    for kind in kinds:
        found = columns_or_rows(kind, rows, True)
        assert found == columns_or_rows(kind, rows, False)
        assert len(found[0]) > 10


def test_by_the_clock_of_the_machine_and_at_the_end_of_the_input():
    class Seconds(WindowBolt):
        outputs = ("key", "count", "length")
        windows = Tumbling(1, fold=Count())

        def on_window(self, key, window, value):
            self.emit((key, value, window.end - window.start))

    class Made(Topology):
        rows = Stamped.spec(par=2)
        windows = Seconds.spec(inputs={rows: Grouping.fields("spout")})

    result = run(Made, cost=COST)
    counts = defaultdict(int)
    for spout, count, length in result.tuples("windows"):
        counts[spout] += count
        assert length == 1.0
    assert counts == {0: Stamped.most, 1: Stamped.most}
    assert len(result.tuples("windows")) > 6


def test_the_one_window_of_a_key_is_seen_as_often_as_asked_for():
    rows = [("a" if place % 3 else "b", place, 1.0) for place in range(9)]
    found, _ = seen(Global(rows=2, fold=Sum("value")), rows)
    assert [(key, firing, value) for key, _, firing, value in found if firing == "early"] == [
        ("a", "early", 3), ("b", "early", 3), ("a", "early", 12), ("a", "early", 27),
    ]  # fmt: skip
    assert sorted(row for row in found if row[2] == "on time") == [
        ("a", None, "on time", 27),
        ("b", None, "on time", 9),
    ]
    found, _ = seen(Global(early=1, fold=Count()), rows)
    assert sorted(row[2:] for row in found[-2:]) == [("on time", 3), ("on time", 6)]
    assert {row[2] for row in found[:-2]} == {"early"}
    assert 2 <= len(found) - 2 <= 6


def test_windows_of_a_task_whose_rows_have_no_key():
    assert run_bolt(type("Three", (Numbers,), {"windows": CountTumbling(3)}), [{"n": n} for n in range(7)]) == [
        (None, [(0,), (1,), (2,)]),
        (None, [(3,), (4,), (5,)]),
        (None, [(6,)]),
    ]


class Numbers(WindowBolt):
    outputs = ("key", "rows")

    def on_window(self, key, window, value):
        self.emit((key, value))
