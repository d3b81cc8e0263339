"""A bolt adds rows up ahead of windows; the windows are the same as without that bolt, whoever dies."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest

from ardea import Grouping, Spout, Stream, TaskState, Timestamps, Topology
from ardea.testing import CollectBolt, run
from ardea.testing.kit import Schedule
from ardea.windows import Fold, PartialWindows, Sliding, Sum, Tumbling, WindowBolt
from tests.simulation.schedules import targets
from tests.simulation.snapshots.counted import EffectivelyOnce
from tests.simulation.watermarks.timed import Stamped
from tests.simulation.windows.test_windows import EVERY_FOLD, KINDS, MODES, Columns, Fixed, Results, Slid, exact
from tests.sizes import size

COST = {"rows": 0.6}


class TenAtOnce(Stamped):
    """The same rows."""

    columns = False

    def next_tuple(self):
        if self.position == self.most:
            self.finish()
            return
        places = range(self.position, self.position + 10)
        self.position += 10
        rows = [(self._me, place, self._stamps[place]) for place in places]
        if self.columns:
            batch = pa.RecordBatch.from_arrays([pa.array(each) for each in zip(*rows, strict=True)], names=self.outputs)
            self.emit_batch(batch, tup_ids=places)
        else:
            self.emit_many(rows, tup_ids=places)


def ahead(kind, columns=False):
    class Parts(PartialWindows):
        outputs = (*Stamped.outputs, "part")
        of = kind

    class Made(Topology):
        rows = type("Rows", (TenAtOnce,), {"columns": columns}).spec(par=2)
        parts = Parts.spec(par=3, inputs=[rows])
        windows = kind.spec(par=2, inputs={parts: Grouping.fields("spout")})
        results = Results.spec(par=2, inputs={windows: Grouping.fields("spout", "start")})

    return Made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [Fixed, Slid])
def test_windows_are_those_of_plain_python_of_fewer_rows(kind, mode):
    result = run(ahead(kind), containers=2, seed=9, cost=COST, config={"topology.reliability.mode": mode})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    found = Counter({(spout, start): count for spout, start, count, _ in result.tuples("windows")})
    assert found == KINDS[kind]()
    assert len(found) == len(result.tuples("windows"))
    assert len(result.tuples("parts")) < len(result.tuples("rows")) == 2 * Stamped.most


@pytest.mark.parametrize("name", ["parts-1", "windows-0"])
def test_effectively_once_windows_are_exact_whoever_dies(name):
    exact(Slid, 10, 2, [(3.0, lambda cluster: cluster.kill(name))], ahead, COST)


@pytest.mark.parametrize("seed", range(size(2, 2000, whole=30)))
def test_effectively_once_windows_are_exact_under_a_schedule_of_faults(seed):
    kind, containers = (Fixed, Slid)[seed % 2], random.Random(f"containers of {seed}").randint(1, 3)
    schedule = Schedule.seeded(seed, targets(ahead(kind), containers), faults=6, seconds=6.0)
    exact(kind, seed, containers, [*schedule.simulated()], ahead, COST)


@pytest.mark.parametrize("columns", [True, False], ids=["columns", "rows"])
def test_at_least_once_no_row_is_lost_when_what_it_was_added_to_is(columns):
    """A row that was made of several is acked for all of them: each comes again, where it is not in its window."""
    config = {"topology.message.timeout.secs": 5.0}
    names = "windows-0", "windows-1"
    faults = [(0.1, lambda cluster, name=name: cluster.freeze(name, 10.0)) for name in names]
    faults += [(2.0, lambda cluster, name=name: cluster.kill(name)) for name in names]
    result = run(ahead(Whole, columns), containers=2, seed=3, cost=COST, config=config, faults=faults)
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    counts: Counter = Counter()
    for spout, _, count, _ in result.tuples("windows"):
        counts[spout] += count
    assert min(counts[0], counts[1]) >= Stamped.most
    assert any(row[-1] is not None for row in result.tuples("parts"))


class Whole(Fixed):
    """One window of all rows."""

    windows = Tumbling(10_000, on="at", fold=Fixed.windows.fold, offset=5000)


# --- the same windows as without ------------------------------------------------------------------------------------


class Longest(Fold):
    """An author's own, which merges."""

    def zero(self):
        return ""

    def add(self, value, row):
        return self.merge(value, str(row["value"]))

    def merge(self, a, b):
        return max(a, b)


def seen(kind, rows, whole, partial):
    """Rows of windows, and those of ``late``, sorted; how many rows the windows got."""

    class Bolt(WindowBolt):
        outputs = ("key", "start", "firing", "value", Stream(Columns.outputs, "late"))
        windows = kind

        def on_window(self, key, window, value):
            self.emit((key, window.start, window.firing, repr(value)))

    class Parts(PartialWindows):
        outputs = (*Columns.outputs, "of several")
        of = Bolt

    class Made(Topology):
        rows_ = type("Rows", (Columns,), {"given": rows, "whole": whole}).spec("rows")
        if partial:
            parts = Parts.spec(inputs=[rows_])
        windows = Bolt.spec(inputs={parts if partial else rows_: Grouping.fields("key")})
        late = CollectBolt.spec(inputs=[windows["late"]])

    result = run(Made, cost={"rows": 0.1}, seed=len(rows))
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    several = [row for row in result.tuples("parts") if row[-1] is not None] if partial else []
    late = sorted(map(repr, result.tuples("windows", "late")))
    return sorted(result.tuples("windows")), late, len(several)


KINDS_OF_WINDOWS = [
    Tumbling(10, on="at", fold=EVERY_FOLD),
    Tumbling(10, on="at", fold=EVERY_FOLD, allowed_lateness=5),
    Sliding(24, 16, on="at", fold=EVERY_FOLD, offset=2),
    Tumbling(10, on="at", fold=Longest()),
    Tumbling(10, on="at"),
]


@pytest.mark.parametrize("whole", [True, False], ids=["columns", "rows"])
@pytest.mark.parametrize(
    "kind",
    KINDS_OF_WINDOWS,
    ids=lambda kind: f"{type(kind).__name__}-{type(kind.fold).__name__}-{kind.allowed_lateness}",
)
def test_what_is_seen_and_what_is_late_is_the_same_as_without(kind, whole):
    chance = random.Random(7)
    stamps = [None, *[float(place) + chance.randint(-12, 12) for place in range(80)]]
    rows = [(chance.choice("ab"), chance.choice([None, 1, 2, 7]), at) for at in stamps]
    *found, several = seen(kind, rows, whole, partial=True)
    *expected, none = seen(kind, rows, whole, partial=False)
    assert found == expected
    assert (several > 5, none, len(found[0]) > 8, len(found[1]) > 3) == (True, 0, True, True)


def test_a_row_that_the_fold_cannot_add_is_told_of_by_the_windows():
    class Prices(Spout):
        outputs = ("key", "price", "at")
        timestamps = Timestamps("at")
        place = TaskState(default=0)

        def next_tuple(self):
            if self.place == 60:
                self.finish()
                return
            places = range(self.place, self.place + 10)
            self.place += 10
            self.emit_many([("a", "free" if place == 30 else 1, float(place)) for place in places])

    class Totals(WindowBolt):
        outputs = ("key", "start", "total")
        windows = Tumbling(10, on="at", fold=Sum("price"))

        def on_window(self, key, window, value):
            self.emit((key, window.start, value))

    class Parts(PartialWindows):
        outputs = (*Prices.outputs, "part")
        of = Totals

    class Made(Topology):
        rows = Prices.spec()
        parts = Parts.spec(inputs=[rows])
        windows = Totals.spec(inputs={parts: Grouping.fields("key")})
        letters = CollectBolt.spec(inputs=[windows["__dead_letter"]])

    result = run(EffectivelyOnce(Made), cost={"rows": 0.2})
    assert result.state == "SUCCEEDED"
    totals = {start: total for _, start, total in result.tuples("windows")}
    assert totals == {0.0: 10, 10.0: 10, 20.0: 10, 30.0: 9, 40.0: 10, 50.0: 10}
    assert {tuple(row[-1])[:3] for row in result.inputs("letters")} == {("a", "free", 30.0)}
