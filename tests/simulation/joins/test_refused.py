"""Rows that cannot be joined, what an author's mistake does, and the page's own example (docs/joins.md)."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from ardea import Bolt, Grouping, KeyedState, Timestamps, Topology
from ardea.joins import LATE, IntervalJoin, JoinBolt, TableJoin
from ardea.testing import Cluster, FeederSpout, run
from ardea.testing.inside import Inside
from tests.simulation.joins import joined as rows
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of

PAGE = Path(__file__).parents[3] / "docs" / "joins.md"


class Left(FeederSpout.of("key", "name", "at")):
    timestamps = Timestamps("at")


class Right(FeederSpout.of("number", "label", "at")):
    timestamps = Timestamps("at")


class Told(JoinBolt):
    outputs = ["left", "right", "at", LATE]
    join = IntervalJoin("left", "right", on="at", after=2, how="outer")

    def joined(self, left, right):
        self.emit([left and left["name"], right and right["label"], self.joined_at])


class Quiet(Told):
    """It has no stream ``late``."""

    outputs = ["left", "right", "at"]


def fed(told, mode="ATLEAST_ONCE"):
    """Two feeders and the join, whose rows somebody reads."""
    left, right = Left.spec(), Right.spec()
    joined = told.spec(inputs={left: Grouping.fields("key"), right: Grouping.fields("number")})
    members = {"left": left, "right": right, "joined": joined}
    return type("Fed", (Topology,), {**members, "config": {"topology.reliability.mode": mode}})


def feed(cluster, **rows):
    """A row of each side that is named; and time for it."""
    for side, row in rows.items():
        cluster.task(f"{side}-0", FeederSpout).feed(row, tup_id=tuple(map(repr, row)))
    cluster.advance(0.6)


def joined(cluster):
    return cluster.task("joined-0", Told)._joining


@pytest.mark.parametrize("told", [Told, Quiet])
def test_what_cannot_be_joined_is_told_once_counted_and_acked(told, caplog):
    with Cluster(fed(told), seed=1) as cluster:
        cluster.advance(0.5)
        feed(cluster, left=["a", "l0", 10.0], right=["a", "r0", 10.0])
        odd = [
            ["a", "late", 9.0],
            ["a", "later", 8.0],
            *(["a", "none", odd] for odd in (None, "x", math.nan, math.inf)),
        ]
        odd.append([{"no": "key"}, "dict", 10.0])
        for row in odd:
            feed(cluster, right=row)
        feed(cluster, right=["a", "r1", 12.0])
        late = [values[2][:2] for values in cluster.record.tuples("joined", "late")]
        assert late == ([row[:2] for row in odd] if told is Told else [])
        assert {values[:2] for values in cluster.record.tuples("joined", "late")} <= {("right", "default")}
        assert cluster.record.tuples("joined") == [("l0", "r0", 10.0), ("l0", "r1", 12.0)]
        assert joined(cluster).refused.counts() == {"late": 2, "unstamped": 4, "unkeyed": 1}
        assert len(cluster.record.acked["right"]) == len(odd) + 2
        assert cluster.record.exceptions == []
    lines = [line for line in caplog.messages if "cannot be joined" in line]
    assert len(lines) == 3, "one of each kind"
    assert lines[0].startswith(
        "joined-0: a row of right:default cannot be joined: its at is 9.0, and the watermark is 10"
    )


def test_numbers_too_large_for_a_clock_have_no_stamp():
    with Cluster(fed(Told), seed=1) as cluster:
        cluster.advance(0.5)
        side = joined(cluster).left
        odd = [FakeRow(("a", "l", at)) for at in (1e300, -(2.0**60), 1 << 62)]
        assert [side.at(row) for row in odd] == [None, None, None]


class FakeRow:
    def __init__(self, values):
        self.values = values


def test_one_that_raises_is_not_kept_and_comes_again():
    class Flawed(Told):
        raises = 1

        def joined(self, left, right):
            if Flawed.raises:
                Flawed.raises -= 1
                raise ValueError("half joined")
            super().joined(left, right)

    with Cluster(fed(Flawed), seed=1) as cluster:
        cluster.advance(0.5)
        feed(cluster, left=["a", "l0", 10.0])
        feed(cluster, right=["a", "r0", 10.0])
        cluster.advance(2.0)
        assert cluster.record.tuples("joined") == [("l0", "r0", 10.0)]
        (kept,) = joined(cluster).rows.values()
        assert [len(rows) for _, rows in kept[:2]] == [1, 1]


def test_rows_that_are_kept_are_read_by_name_when_a_stream_has_other_fields():
    with Cluster(fed(Told), seed=1) as cluster:
        cluster.advance(0.5)
        feed(cluster, left=["a", "l0", 10.0])
        kept = joined(cluster).rows
        kept["a"] = [[["at", "name", "gone"], [[10_000_000, False, (10.0, "before", 1)]]], *kept["a"][1:]]
        feed(cluster, right=["a", "r0", 10.0])
        assert cluster.record.tuples("joined") == [("before", "r0", 10.0)]
        assert kept["a"][0] == [["key", "name", "at"], [[10_000_000, True, [None, "before", 10.0]]]]


class Latest(Told):
    join = TableJoin("left", "right", how="left")

    def initialize(self, config, context):
        """An author's own, who need not call that of the base, and who has attributes."""
        self._rows = self._keys = self._cache = None

    def removes(self, right):
        return right["label"] is None


def test_a_table_forgets_the_keys_that_its_rows_remove():
    with Cluster(fed(Latest), seed=1) as cluster:
        cluster.advance(0.5)
        for row in (["a", "r0", 1.0], ["a", None, 1.0]):
            feed(cluster, right=row)
            feed(cluster, left=["a", "l", 1.0])
        assert cluster.record.tuples("joined") == [("l", "r0", None), ("l", None, None)]
        assert joined(cluster).rows == {}


def test_a_key_that_is_quiet_leaves_nothing_behind():
    with Cluster(fed(Told), seed=1) as cluster:
        cluster.advance(0.5)
        feed(cluster, left=["a", "l0", 10.0], right=["b", "r0", 10.0])
        feed(cluster, left=["c", "l1", 13.0], right=["c", "r1", 13.0])
        assert sorted(joined(cluster).rows) == ["c"]
        assert Inside(cluster).executor("joined-0").env.states.timers.get("a") is None
        assert sorted(cluster.record.tuples("joined"), key=str) == [
            ("l0", None, 12.000001), ("l1", "r1", 13.0), (None, "r0", 10.000001),
        ]  # fmt: skip


class LateLeft(rows.Left):
    """The last row of each task is late by far."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self._rows = [*self._rows, (0, "late", -100.0)]


class Emits(rows.Told):
    outputs = (*rows.Told.outputs, LATE)


class Lates(Bolt):
    late = KeyedState(default=0)

    def process(self, tup):
        self.late[tup["component"]] += tup["values"][1] == "late"


def test_effectively_once_a_late_row_goes_to_late_once_whoever_dies(monkeypatch):
    monkeypatch.setattr(rows, "Left", LateLeft)
    topology = rows.topology(Told.join, told=Emits)
    topology.late = Lates.spec(inputs={topology.joined["late"]: Grouping.fields("component")})
    config = {"topology.stateful.checkpoint.interval.secs": 0.3, "topology.key.groups": 8}
    cost = {"left": 0.05, "right": 0.025}
    with Cluster(EffectivelyOnce(topology), seed=3, config=config, cost=cost, check=False) as cluster:
        for time in (0.8, 1.1):
            cluster.at(time, lambda _: cluster.kill("joined-0"))
        cluster.run_until(lambda: cluster.over, timeout=200)
        store = Inside(cluster).store
        late = [tables["late"] for tables in tables_of(store, store.records[-1].committed) if "late" in tables]
        assert late == [{"left": 2}]
        assert rows.committed(cluster)[0] == rows.expected(
            lambda left, right: 0 <= round(right - left, 3) <= 2, "outer"
        )


def test_at_least_once_what_a_dead_task_had_kept_is_missing_and_nothing_hangs():
    topology = rows.topology(IntervalJoin("left", "right", on="at", after=2))
    cost, faults = {"left": 0.05, "right": 0.025}, [(0.8, lambda cluster: cluster.kill("joined-0"))]
    rows.Results.seen.clear()
    result = run(topology, seed=3, cost=cost, faults=faults, check=False, config={"topology.message.timeout.secs": 5})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    pairs = rows.expected(lambda left, right: 0 <= round(right - left, 3) <= 2, "inner")
    assert len(pairs) / 2 < len({*rows.Results.seen}) < len(pairs)
    assert {*rows.Results.seen} <= {*pairs}


def test_the_example_of_the_page_does_what_it_says():
    names = {"__name__": "page"}
    exec(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)[0], names)
    result = run(names["Shop"], config={"topology.reliability.mode": "EFFECTIVELY_ONCE"}, raise_errors=True)
    assert sorted(result.tuples("paid")) == [
        ("a", 12.5, "cash", 1090.0), ("b", 7.0, "card", 1010.0), ("c", 3.0, None, 1620.000001),
    ]  # fmt: skip
    assert result.tuples("paid", "late") == []
