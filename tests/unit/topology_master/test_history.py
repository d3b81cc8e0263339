"""The samples that a master keeps: bounded, in order, each given once to who asks again."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from ardea.metrics.samples import FIELDS, KEPT, Samples
from ardea.topology_master.history import EVERY, MOST_BYTES, History

BEGUN = 1_000_000.0


class Kept:
    """A history that is asked at each second; Unix seconds are a million more."""

    def __init__(self, **bounds):
        self.now, self.names = 0.0, ["count", "count-0"]
        self.history = History(0.0, BEGUN, **bounds)

    def sample(self, value=1.0):
        if self.history.due(self.now):
            self.history.add(self.now, {name: [value] * len(FIELDS) for name in self.names})

    def runs(self, seconds):
        for _ in range(int(seconds)):
            self.sample(self.now)
            self.now += 1.0

    def says(self, since=0.0):
        return self.history.samples(self.names, since)


def test_a_new_one_has_none_and_says_since_when():
    said = Kept().says()
    assert (said.since, said.interval, said.times, said.series) == (BEGUN, EVERY, [], {})


def test_a_sample_each_five_seconds_of_the_last_fifteen_minutes():
    kept = Kept()
    kept.runs(2 * KEPT)
    said = kept.says()
    assert said.times == [BEGUN + KEPT + EVERY * i for i in range(180)]
    assert said.series["count-0"]["emitted"] == [KEPT + EVERY * i for i in range(180)]
    assert [*said.series["count"]] == [*FIELDS]


def test_a_loop_that_was_late_takes_no_two_samples_at_once():
    kept = Kept()
    kept.runs(6)
    kept.now += 60.0
    kept.runs(20)
    gaps = [b - a for a, b in zip(kept.says().times, kept.says().times[1:], strict=False)]
    assert gaps == [5.0, 61.0, 3.0, 5.0, 5.0, 5.0]


def test_what_is_not_known_is_null_and_so_is_what_was_before_a_task_came():
    kept = Kept()
    kept.sample(1.0)
    kept.now, kept.names = EVERY, ["count", "new-0"]
    kept.history.add(kept.now, {"count": [math.nan] * len(FIELDS), "new-0": [2.0] * len(FIELDS)})
    assert msgspec.json.decode(msgspec.json.encode(kept.says()), type=Samples) == kept.says()
    assert kept.says().series["count"]["cpu"] == [1.0, None]
    assert kept.says().series["new-0"]["cpu"] == [None, 2.0]


def test_a_task_that_is_gone_is_forgotten():
    kept = Kept()
    kept.runs(20)
    kept.names = ["count"]
    kept.runs(20)
    assert [*kept.history.samples(["count", "count-0"]).series] == ["count"]


def test_a_value_has_six_digits():
    kept = Kept()
    kept.sample(0.123456789)
    assert kept.says().series["count"]["latency_p99"] == [0.123457]


@pytest.mark.parametrize("tasks", [1000, 1282, 1283, 5000])
def test_many_tasks_have_samples_further_apart_and_no_more_room(tasks):
    kept = Kept()
    kept.names = [f"t-{i}" for i in range(tasks)]
    kept.sample()
    assert kept.history.bytes <= MOST_BYTES
    assert (kept.history.interval == EVERY) == (tasks <= 1282)


def test_where_half_of_the_samples_have_no_room_the_oldest_goes():
    """45 at 20 s leave 23 at 40 s, where there is room for 22."""
    kept = Kept(most_bytes=2 * 45 * 4 * len(FIELDS))
    kept.runs(2 * KEPT)
    assert kept.history.interval == 20.0
    kept.names.append("count-1")
    kept.runs(1)
    assert kept.history.interval == 40.0
    said = kept.says()
    assert said.times == [BEGUN + at for at in (*range(980, 1781, 40), 1800)]
    assert said.series["count"]["emitted"] == [at - BEGUN for at in said.times]


@pytest.mark.parametrize("seed", range(10))
def test_bounded_ordered_and_complete_whatever_happens(seed):
    """Tasks come and go, the loop is late, and somebody asks again and again with the last time that he has."""
    draw = random.Random(seed)
    most, sizes = 100_000, (1, 3, 10, *((20, 70) if seed % 2 else ()))
    kept, seen, given = Kept(most_bytes=most), 0.0, []
    added, thinned = [], False
    for _ in range(400):
        kept.names = [f"t-{i}" for i in range(draw.choice(sizes))] if draw.random() < 0.05 else kept.names
        due, interval = kept.history.due(kept.now), kept.history.interval
        kept.sample(kept.now)
        thinned |= kept.history.interval > interval
        added += [BEGUN + kept.now] if due else []
        assert kept.history.bytes <= most
        if draw.random() < 0.2:
            said = kept.says(seen)
            assert said.times == sorted(set(said.times))
            assert all(at > seen for at in said.times)
            for series in said.series.values():
                assert {len(column) for column in series.values()} == {len(said.times)}
                known = [
                    (at, value) for at, value in zip(said.times, series["acked"], strict=True) if value is not None
                ]
                assert all(abs(BEGUN + value - at) < 1.0 for at, value in known), "a value stands at its own time"
            given, seen = given + said.times, said.times[-1] if said.times else seen
        kept.now += draw.choice((0.5, 1.0, 1.0, 7.0))
    assert given == sorted(set(given))
    assert set(given) <= set(added)
    assert thinned == bool(seed % 2)
    if not thinned:
        assert given == [at for at in added if at <= seen]
