"""What rows of windows may meet: a session that is due, nothing but None, folds that change what they get."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pyarrow as pa
import pytest

from ardea import Bolt, FailedException, Grouping, Spout, Stream, TaskState, Timestamps, Topology
from ardea.testing import Cluster, RowsSpout, run
from ardea.windows import (
    Count,
    CountTumbling,
    First,
    Fold,
    Global,
    Max,
    Mean,
    Min,
    Session,
    Sliding,
    Sum,
    Tumbling,
    WindowBolt,
)
from ardea.windows.folds import Groups
from ardea.windows.stamps import micros, micros_of_column
from tests.simulation.snapshots.counted import EffectivelyOnce
from tests.simulation.windows.test_windows import columns_or_rows, seen


class Moved(Spout):
    """Sessions of 500 keys that are all due at once, and rows for them, two seconds late, before all were seen."""

    outputs = ("key", "at")
    timestamps = Timestamps("at")

    def initialize(self, config, context):
        self._turn = -1

    def next_tuple(self):
        self._turn += 1
        if self._turn == 0:
            self.emit_many([(key, 1.0) for key in range(500)])
        elif self._turn == 1:
            self.emit(("other", 12.0))
        elif self._turn == 15:
            self.emit_many([(key, 10.0) for key in range(500)])
        elif self._turn > 15:
            self.finish()


class Visits(WindowBolt):
    outputs = ("key", "firing", "value", Stream(Moved.outputs, "late"))

    def on_window(self, key, window, value):
        self.emit((key, window.firing, value))


class Kept(Bolt):
    def process(self, tup):
        pass


@pytest.mark.parametrize("allowed", [0, 1000])
def test_rows_that_join_sessions_which_are_due_are_in_them_and_nothing_waits_for_ever(allowed):
    class Made(Topology):
        rows = Moved.spec()
        visits = type("V", (Visits,), {"windows": Session(10, on="at", fold=Count(), allowed_lateness=allowed)}).spec(
            inputs={rows: Grouping.fields("key")}
        )
        kept = Kept.spec(inputs=[visits, visits["late"]])

    with Cluster(Made, cost={"rows": 0.02, "visits": 0.002}) as cluster:
        cluster.run_until(lambda: cluster.over, timeout=60)
        assert cluster.state == "SUCCEEDED"
        found, late = cluster.record.tuples("visits"), cluster.record.tuples("visits", "late")
    values: dict[object, list[int]] = {}
    for key, firing, value in found:
        assert firing == "on time", "none of them was over when its row came"
        values.setdefault(key, []).append(value)
    assert (values.pop("other"), late) == ([1], [])
    again = [1, 2] if allowed else [1, 1]  # it was seen before: it is seen again, or another one begins
    assert {*map(tuple, values.values())} == {(2,), tuple(again)}
    assert len(values) == 500


def test_rows_with_nothing_but_none_are_windows_too():
    rows = [("a", None, 1.0), ("b", None, 1.0), ("b", 2, 2.0), ("c", 1, 30.0)]
    found, _ = seen(Tumbling(10, on="at", fold=Sum("value")), rows)
    assert sorted((key, value) for key, _, _, value in found) == [("a", 0), ("b", 2), ("c", 1)]


class Batch(Spout):
    """All in one message; the second cannot be added."""

    outputs = ("key", "value", "at")
    timestamps = Timestamps("at")

    def next_tuple(self):
        self.emit_many([("a", 5, 1.0), ("b", "oops", 1.0), ("c", 1, 1.0), ("c", 2, 2.0)])
        self.finish()


@pytest.mark.parametrize("kind", [Tumbling(10, on="at", fold=Sum("value")), Sliding(10, 5, on="at", fold=Sum("value"))])
def test_rows_that_a_fold_has_not_added_are_in_no_window(kind):
    """At most once all rows of a call that raises are gone, but those that were added before."""

    class Made(Topology):
        rows = Batch.spec()
        sums = type("V", (Visits,), {"windows": kind, "outputs": ("key", "firing", "value")}).spec(
            inputs={rows: Grouping.fields("key")}
        )

    result = run(Made, config={"topology.reliability.mode": "ATMOST_ONCE"})
    assert result.state == "SUCCEEDED"
    assert {(key, value) for key, _, value in result.tuples("sums")} == {("a", 5)}


def test_stamps_of_nanoseconds_of_today():
    now = time.time_ns() // 10**10 * 10**10
    rows = [("a", 1, now + place * 4 * 10**9) for place in range(5)]
    found, late = seen(Tumbling(10, on="at", fold=Count(), unit="ns"), rows)
    assert ([value for *_, value in found], late) == ([3, 2], [])


class Words(Fold):
    """Of an author who changes what merge gets, as Flink allows."""

    def zero(self):
        return {}

    def add(self, value, row):
        value[row["value"]] = value.get(row["value"], 0) + 1
        return value

    def merge(self, a, b):
        for word, count in b.items():
            a[word] = a.get(word, 0) + count
        return a


def test_a_merge_that_changes_its_first_argument_counts_no_row_twice():
    rows = [("a", "x", float(at)) for at in range(6)]
    found, _ = seen(Sliding(6, 2, on="at", fold=Words()), rows)
    assert {start: value["x"] for _, start, _, value in found} == {-4.0: 2, -2.0: 4, 0.0: 6, 2.0: 4, 4.0: 2}


@pytest.mark.parametrize(
    ("values", "fold"),
    [
        ([2**62] * 4, Sum("value")),
        ([2**62] * 4, Mean("value")),
        ([["a"], ["b"]], First("value")),
    ],
    ids=["sum", "mean", "lists"],
)
def test_columns_that_arrow_cannot_add_up_are_folded_as_rows_are(values, fold):
    kind, rows = Tumbling(10, on="at", fold=fold), [("a", value, 1.0) for value in values]
    assert columns_or_rows(kind, rows, True) == columns_or_rows(kind, rows, False)


class Three(Spout):
    outputs = ("key", "at")
    timestamps = Timestamps("at")
    place = TaskState(default=0)

    def next_tuple(self):
        if self.place < 3:
            self.emit(("a", float(self.place)))
            self.place += 1


@pytest.mark.parametrize(
    "kind",
    [
        Global(early=5, fold=Count()),
        Tumbling("1 h", on="at", early=5, fold=Count()),
        Session("1 h", on="at", early=5, fold=Count()),
    ],
    ids=lambda kind: type(kind).__name__,
)
@pytest.mark.parametrize("faults", [[], [(3.0, lambda cluster: cluster.kill("visits-0"))]], ids=["alive", "killed"])
def test_a_window_is_seen_early_once_also_when_its_task_was_killed_before(kind, faults):
    class Made(Topology):
        rows = Three.spec()
        visits = type("V", (Visits,), {"windows": kind, "outputs": ("key", "firing", "value")}).spec(
            inputs={rows: Grouping.fields("key")}
        )
        kept = Kept.spec(inputs=[visits])

    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    with Cluster(EffectivelyOnce(Made), config=config, cost={"rows": 0.1}, faults=faults) as cluster:
        cluster.advance(30.0)
        assert cluster.record.tuples("visits") == [("a", "early", 3)]


def test_the_least_of_texts_in_a_dictionary():
    columns = pa.record_batch({"value": pa.array(["b", "a", "c"]).dictionary_encode()})
    assert Min("value").parts(columns, Groups(np.array([0, 0, 1]), 2)) == ["a", "c"]


@pytest.mark.parametrize(("fold", "numbers"), [(Min("value"), [1.0, 2.0]), (Max("value"), [2.0, 1.0])])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float16()])
def test_a_nan_gives_way_to_any_number_in_rows_and_in_columns(fold, numbers, kind):
    for values in itertools.permutations([*numbers, math.nan, math.nan]):
        value = fold.zero()
        for each in values:
            value = fold.put(value, each)
        column = pa.array(np.array(values, dtype=np.float16)) if kind == pa.float16() else pa.array(values)
        parts = fold.parts(pa.record_batch({"value": column}), Groups(np.zeros(4, dtype=np.intp), 1))
        assert [value] == parts == numbers[:1]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_whole_number_without_end_is_no_stamp(unit):
    assert Timestamps("at", unit=unit).seconds(10**400) is None
    assert micros([1, 10**400], Timestamps("at", unit=unit))[1].tolist() == [1]


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_nanoseconds_are_one_time_at_a_spout_in_rows_and_in_columns(kind):
    unit, stamps = Timestamps("at", unit="ns"), [1_700_000_039_999_999_999, 1_700_000_040_000_000_000, 1]
    expected = [1_700_000_039_999_999, 1_700_000_040_000_000, 0]
    assert [unit.seconds(stamp) * 1e6 for stamp in stamps] == expected
    assert micros(stamps, unit)[0].tolist() == micros_of_column(pa.array(stamps, kind), unit)[0].tolist() == expected


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_large_numbers_are_the_same_stamps_in_rows_and_in_columns(unit):
    stamps, said = [7, (1 << 63) + 999, (1 << 64) - 1], Timestamps("at", unit=unit)
    (rows, none), (columns, nor) = micros(stamps, said), micros_of_column(pa.array(stamps, pa.uint64()), said)
    assert (rows.tolist(), none.tolist()) == (columns.tolist(), nor.tolist())


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_that_no_clock_has_are_no_stamps(unit):
    """As databases have infinity; all nanoseconds are times of this world but the least, which is NumPy's NaT."""
    column = pa.array([7, 2**63 - 1, -(2**63), None, -1], pa.timestamp(unit))
    found, none = micros_of_column(column, Timestamps("at"))
    assert none.tolist() == ([2, 3] if unit == "ns" else [1, 2, 3])
    per = {"s": 10**6, "ms": 1000, "us": 1, "ns": 0.001}[unit]
    assert [found[0], found[4]] == [math.floor(7 * per), math.floor(-per)]


def test_a_stamp_before_all_clocks_is_none_and_stops_nobody():
    rows_of = RowsSpout.of(Moved.outputs, [("a", -1e305), ("a", 1.0), ("a", 2.0)])

    class Made(Topology):
        rows = type("Ancient", (rows_of,), {"timestamps": Moved.timestamps}).spec()
        visits = type("Days", (Visits,), {"windows": Tumbling("1 d", on="at", fold=Count())}).spec(
            inputs={rows: Grouping.fields("key")}
        )
        kept = Kept.spec(inputs=[visits["late"]])

    result = run(Made, cost={"rows": 0.2})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    assert result.tuples("visits") == [("a", "on time", 2)]
    assert result.tuples("visits", "late") == [("a", -1e305)]


class Twice(Spout):
    """Two batches, each with a row of either key."""

    outputs = ("key", "place")
    place = TaskState(default=0)

    def next_tuple(self):
        if self.place < 2:
            self.emit_many([("a", self.place), ("b", self.place)], [f"a {self.place}", f"b {self.place}"])
            self.place += 1


@pytest.mark.parametrize("error", [RuntimeError, FailedException])
@pytest.mark.parametrize("mode", ["ATMOST_ONCE", "ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_no_window_is_skipped_where_one_that_a_row_fills_raises(mode, error):
    """All goes back, or its process ends: it does not go on without the windows that were full as well."""
    lives = []

    class Pairs(Visits):
        outputs = ("key", "firing", "value")
        windows = CountTumbling(2, fold=Count())

        def initialize(self, config, context):
            lives.append(self)

        def on_window(self, key, window, value):
            if len(lives) == 1:
                raise error("not now")
            super().on_window(key, window, value)

    class Made(Topology):
        rows = Twice.spec()
        pairs = Pairs.spec(inputs={rows: Grouping.fields("key")})

    with Cluster(Made, config={"topology.reliability.mode": mode}) as cluster:
        cluster.advance(60.0)
        if mode == "EFFECTIVELY_ONCE":
            assert cluster.record.tuples("pairs") == [("a", "on time", 2), ("b", "on time", 2)]
        else:
            assert len(lives) == 2
