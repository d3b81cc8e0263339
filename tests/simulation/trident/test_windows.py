"""Windows: which rows are in which, whatever the batches are, and whatever dies."""

from __future__ import annotations

import math
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea import TopologyError
from ardea.errors import StateError
from ardea.trident import (
    Aggregator,
    DirectorySpout,
    FixedBatchSpout,
    MemoryMap,
    OpaqueMap,
    SqliteState,
    StateFactory,
    Sum,
    TridentTopology,
    WindowConfig,
)

from .parts import run_through, run_under_kills


def windows_of(config, batches):
    """``batches``: (time, rows); the windows after each."""
    rows, value, fired = {}, None, []
    for txid, (now, batch) in enumerate(batches, 1):
        index = config.stored(value)
        rows |= index.add(txid, batch, now)
        fired.append([window.rows(rows) for window in index.fire()])
        value = index.value()
    return fired


def one_by_one(*rows):
    return [(0.0, [row]) for row in rows]


def flat(windows):
    return [window for batch in windows for window in batch]


def test_storms_count_windows():
    """WindowManagerTest: length 5, slide 2; tumbling 3; and equal timestamps play no part."""
    fired = flat(windows_of(WindowConfig(5, 2), one_by_one(*range(1, 9))))
    assert fired == [[1, 2], [1, 2, 3, 4], [2, 3, 4, 5, 6], [4, 5, 6, 7, 8]]
    assert flat(windows_of(WindowConfig(3, 3), one_by_one(*range(1, 8)))) == [[1, 2, 3], [4, 5, 6]]
    assert windows_of(WindowConfig(2, 2), [(0.0, [*range(1, 11)])]) == [[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]]]


def test_a_window_of_time():
    """Storm's 20 and 10; a window fires with the first batch behind its end, and empty ones are passed over."""
    times = {1: 603, 2: 605, 3: 607, 4: 618, 5: 626, 6: 636}
    batches = [(float(time), [row]) for row, time in times.items()]
    fired = flat(windows_of(WindowConfig(20, 10, timed=True), [*batches, (825.0, [7]), (839.0, [])]))
    assert fired == [[1, 2, 3], [1, 2, 3, 4], [4, 5], [5, 6], [6], [7]]


configs = st.builds(
    lambda length, share, timed: WindowConfig(length, max(1, length * share // 10), timed),
    st.integers(1, 12),
    st.integers(1, 10),
    st.booleans(),
)
steps = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=30)


@given(config=configs, steps=steps)
def test_windows_are_those_of_the_definition(config, steps):
    """Counted windows end at multiples of the slide, timed ones too, of the times; batches make no difference."""
    now, number, batches, times = 1000.0, 0, [], {}
    for pause, count in steps:
        now += pause
        batches.append((now, list(range(number + 1, number + count + 1))))
        times.update(dict.fromkeys(batches[-1][1], now))
        number += count
    fired = flat(windows_of(config, batches))
    slide, length = config.slide, config.length
    if config.timed:
        ends = range(math.ceil(1000 / slide), math.ceil(now / slide))
        expected = [[r for r, t in times.items() if e * slide - length < t <= e * slide] for e in ends]
        assert fired == [window for window in expected if window]
    else:
        ends = range(int(slide), number + 1, int(slide))
        assert fired == [[r for r in times if end - length < r <= end] for end in ends]


@pytest.mark.parametrize(
    ("length", "slide"), [(3, 4), (0, None), (3, 0), (3, timedelta(1)), (timedelta(0), None), ("3", None)]
)
def test_what_is_no_window(length, slide):
    with pytest.raises(TopologyError, match=r"cannot slide|two numbers or two timedeltas"):
        WindowConfig.of(length, slide)


class Rows(Aggregator):
    """The rows themselves."""

    def init(self, batch_id, collector):
        return []

    def aggregate(self, value, tup, collector):
        value.append(tup["line"])

    def complete(self, value, collector):
        collector.emit(["-".join(value)])


def test_windows_in_a_topology():
    topology, seen = TridentTopology("windows"), []
    stream = topology.new_stream("rows", FixedBatchSpout(["n"], [[n] for n in range(10)], 4))
    stream.tumbling_window(3, Sum(), "sum", "n").peek(lambda tup: seen.append(tup["sum"]))
    stream.sliding_window(4, 2, Sum(), "sum").peek(lambda tup: seen.append(-tup["sum"]))
    cluster = run_through(topology)
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert sorted(seen) == sorted([3, 12, 21, -1, -6, -14, -22, -30])


def test_windows_of_one_component_share_their_metric_of_late_rows():
    """Both after one function, and one after the other: each pair is in one bolt."""
    topology, seen = TridentTopology("windows"), []
    spout = FixedBatchSpout(["n"], [[n] for n in range(12)], 4)
    stream = topology.new_stream("rows", spout).each("n", lambda tup: [tup["n"] + 1], "m")
    stream.tumbling_window(3, Sum(), "a", "m").peek(lambda tup: seen.append(tup["a"]))
    stream.tumbling_window(2, Sum(), "b", "m").tumbling_window(3, Sum(), "c").peek(lambda tup: seen.append(-tup["c"]))
    cluster = run_through(topology)
    assert (cluster.state, cluster.record.errors) == ("SUCCEEDED", [])
    assert sorted(seen) == [-57, -21, 6, 15, 24, 33]


def test_a_window_of_time_in_a_topology():
    topology, seen = TridentTopology("timed"), []
    stream = topology.new_stream("rows", FixedBatchSpout(["n"], [[1]] * 40, 1))
    stream.tumbling_window(timedelta(seconds=2), Sum(), "sum").peek(lambda tup: seen.append(tup["sum"]))
    cluster = run_through(topology, config={"topology.trident.batch.emit.interval.millis": 250})
    assert cluster.state == "SUCCEEDED"
    assert 3 <= len(seen) <= 5
    assert all(7 <= each <= 9 for each in seen[1:])


class Full(MemoryMap):
    """Refuses the first write."""

    full = True

    def multi_put(self, keys, values):
        full, self.full = self.full, False
        if full:
            raise StateError("no space left")
        super().multi_put(keys, values)


class FullOnce(StateFactory):
    kind = "opaque"

    def make_state(self, config, partition_index, num_partitions):
        return OpaqueMap(Full())


def test_windows_that_could_not_be_stored_are_emitted_once():
    """When the batch comes again; they had been emitted before the state was written."""
    topology, seen = TridentTopology("windows"), []
    rows = topology.new_stream("rows", FixedBatchSpout(["n"], [[n] for n in range(4)], 2))
    rows.tumbling_window(2, Sum(), "sum", "n", state=FullOnce()).peek(lambda tup: seen.append(tup["sum"]))
    cluster = run_through(topology)
    assert (cluster.state, len(cluster.record.failed["$mastercoord-bg0"])) == ("SUCCEEDED", 1)
    assert seen == [1, 5]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["transactional", "opaque_transactional"])
@pytest.mark.parametrize("seed", range(4))
def test_each_row_is_in_its_windows_once_whatever_is_killed(tmp_path, kind, seed):
    """In Storm a batch that comes again enters the window again, and a crash loses what was in it."""
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).write_text("".join(f"{name}{number}\n" for number in range(40)))
    topology = TridentTopology("windows")
    lines = topology.new_stream("files", getattr(DirectorySpout, kind)(tmp_path / "in", lines=5)).global_()
    window = lines.sliding_window(6, 3, Rows(), "rows", state=SqliteState.opaque(tmp_path / "windows.sqlite"))
    out = SqliteState.opaque(tmp_path / "out.sqlite")
    counts = window.each("rows", lambda _: [1], "one").group_by("rows").persistent_aggregate(out, Sum(), "n", "one")
    assert counts
    rng = random.Random(f"{kind} {seed}")
    run_under_kills(topology, rng, seed)
    windows = {key[0]: count for key, count in out.items()}
    assert set(windows.values()) == {1}, "each window once"
    ends = {}
    for window in windows:
        for row in window.split("-"):
            ends[row] = ends.get(row, 0) + 1
    assert len(ends) == 78, "rows from 1 to the last multiple of 3"
    assert sorted(ends.values()) == [1] * 3 + [2] * 75, "each row in two windows, but for the last three"
