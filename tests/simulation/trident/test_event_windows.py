"""Windows by the times in tuples: each row is in its windows once, whatever the batches are, and whatever dies."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ardea import TopologyError, UserError
from ardea.trident import Count, DirectorySpout, FixedBatchSpout, SqliteState, Sum, TridentTopology
from ardea.trident.event_windows import EventWindowConfig
from ardea.windows import CountTumbling, Session, Sliding, Tumbling
from ardea.windows import Sum as SumFold

from .parts import run_through, run_under_kills

NOW = 1_700_000_000.0


def windows_of(config, batches):
    """The windows after each batch of (time, row), as (start, rows), and the rows that were late."""
    rows, value, fired, late = {}, None, [], []
    for txid, batch in enumerate(batches, 1):
        index = config.stored(value)
        added = index.add(txid, batch, NOW)
        rows |= added
        kept = {row[1:] for part in added.values() for row in part}
        late += [row[1] for row in batch if row[1:] not in kept]
        for window in index.fire():
            if found := window.rows(rows):  # as the updater does it
                fired.append((window.bounds[0], [row[0] for row in found]))  # noqa: PERF401
        value = index.value()
        assert set(rows) >= {chunk.slot for chunk in index.chunks}
    return fired, late


def by_definition(config, batches):
    """Row by row and window by window."""
    kind, lateness = config.windows, config.lateness / 1e6
    size, every, offset = kind.size_us / 1e6, kind.every_us / 1e6, kind.offset_us / 1e6
    windows, watermark, fired, late = {}, -math.inf, [], []
    for batch in batches:
        for time, row in batch:
            starts = [start for n in range(-60, 400) if (start := n * every + offset) <= time < start + size]
            open_ones = [start for start in starts if start + size > watermark]
            late += [] if open_ones else [row]
            for start in open_ones:
                windows.setdefault(start, []).append(row)
        watermark = max([watermark, *(time - lateness for time, _ in batch)])
        complete = sorted(start for start in windows if start + size <= watermark)
        fired += [(start, windows.pop(start)) for start in complete]
    return fired, late


KINDS = st.one_of(
    st.builds(lambda size, offset: Tumbling(size, on="at", offset=offset), st.integers(1, 9), st.integers(0, 3)),
    st.builds(lambda every, more: Sliding(every + more, every, on="at"), st.integers(1, 4), st.integers(0, 9)),
)


@given(
    kind=KINDS,
    lateness=st.integers(0, 6),
    times=st.lists(st.lists(st.integers(0, 60), max_size=6), max_size=12),
)
@example(kind=Tumbling(3, on="at"), lateness=0, times=[[0, 50], [2, 51]])
def test_windows_are_those_of_the_definition(kind, lateness, times):
    """Any order of arrival, any batches: the same windows with the same rows, and each late row once."""
    config = EventWindowConfig.of(kind, lateness, ("start", "end"))
    numbers = iter(range(1000))
    batches = [[(time, next(numbers)) for time in batch] for batch in times]
    assert windows_of(config, batches) == by_definition(config, batches)


def test_a_time_of_the_future_moves_nothing_and_one_of_1970_costs_nothing():
    config = EventWindowConfig.of(Sliding(10, 1, on="at"), 0, ("start", "end"))
    batches = [[(0, "old"), (NOW, "now")], [(NOW + 9e8, "far")], [(NOW + 1, "next")], [(NOW + 20, "last")]]
    fired, late = windows_of(config, batches)
    assert [row for start, rows in fired if start < 100 for row in rows] == ["old"] * 10
    assert {row for _, rows in fired for row in rows} == {"old", "now", "next"}
    assert late == []


def test_a_time_of_the_future_keeps_its_row_and_not_its_batch():
    config, rows = EventWindowConfig.of(Tumbling(10, on="at"), 0, ()), {}
    index = config.stored(None)
    rows |= index.add(1, [(NOW, "a"), (NOW + 9e8, "far"), (NOW + 1, "b")], NOW)
    assert [[name for (name,) in window.rows(rows)] for window in index.fire()] == []
    index = config.stored(index.value())
    rows |= index.add(2, [(NOW + 20, "c")], NOW)
    assert [[name for (name,) in window.rows(rows)] for window in index.fire()] == [["a", "b"]]
    assert [[row[1] for row in rows[chunk.slot]] for chunk in index.chunks] == [["far"], ["c"]]


@pytest.mark.parametrize("time", [None, "today", float("nan"), True])
def test_what_is_no_time(time):
    index = EventWindowConfig.of(Tumbling(10, on="at"), 0, ()).stored(None)
    with pytest.raises(UserError, match=r"by the time in field at: .* is no time"):
        index.add(1, [(5, "good"), (time, "bad")], NOW)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": Tumbling(10)}, "with on=FIELD"),
        ({"windows": Session(10, on="at")}, "Tumbling or Sliding"),
        ({"windows": CountTumbling(10)}, "Tumbling or Sliding"),
        ({"windows": 10}, "Tumbling or Sliding"),
        ({"windows": Tumbling(10, on="when")}, "when"),
        ({"windows": Tumbling(10, on="at", early=1)}, "no early"),
        ({"windows": Tumbling(10, on="at", allowed_lateness=1)}, "how late rows may be"),
        ({"windows": Tumbling(10, on="at", fold=SumFold("n"))}, "no early"),
        ({"lateness": -1}, "lateness takes"),
        ({"bounds": "start"}, "two fields"),
    ],
)
def test_what_is_no_window(options, message):
    stream = TridentTopology("windows").new_stream("rows", FixedBatchSpout(["at", "n"], [[0, 1]], 1))
    with pytest.raises(TopologyError, match=message):
        stream.window(**({"windows": Tumbling(10, on="at")} | options), aggregator=Sum(), outputs="sum", inputs="n")


def test_windows_in_a_topology():
    """The window and its bounds; what is late is left out."""
    topology, seen = TridentTopology("windows"), []
    rows = [[0, 1], [4, 2], [11, 4], [9, 8], [25, 16], [3, 32], [50, 64]]
    stream = topology.new_stream("rows", FixedBatchSpout(["at", "n"], rows, 1))
    window = stream.window(Tumbling(10, on="at"), Sum(), "sum", "n", lateness=2, bounds=("start", "end"))
    window.peek(lambda tup: seen.append(tuple(tup)))
    cluster = run_through(topology)
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert seen == [(11, 0.0, 10.0), (4, 10.0, 20.0), (16, 20.0, 30.0)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_in_its_window_once_whatever_is_killed(tmp_path, kind, seed):
    rng = random.Random(f"{kind} {seed}")
    times = sorted(range(120), key=lambda time: time + rng.uniform(0, 20))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("".join(f"{time}\n" for time in [*times, 1000]))
    topology = TridentTopology("windows")
    lines = topology.new_stream("files", getattr(DirectorySpout, kind)(tmp_path / "in", lines=5)).global_()
    stamped = lines.each("line", lambda tup: [int(tup["line"])], "at")
    options = {"lateness": 20, "bounds": ("start", "end"), "state": SqliteState.opaque(tmp_path / "windows.sqlite")}
    counted = stamped.window(Sliding(12, 6, on="at"), Count(), "n", "line", **options)
    out = SqliteState.opaque(tmp_path / "out.sqlite")
    assert counted.group_by("start").persistent_aggregate(out, Sum(), "total", "n")
    run_under_kills(topology, rng, seed)
    totals = {key[0]: total for key, total in out.items()}
    assert totals == {start: 6 if start in (-6, 114) else 12 for start in range(-6, 120, 6)}
