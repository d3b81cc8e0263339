"""Pairs of runs: which figures are compared, how their ratios are turned, and how sure their median is."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import pairs
from benchmarks.pairs import checkout, compared, figures, interval, rounds
from benchmarks.results import BenchmarkError

DOCUMENT = {
    "machine": {"cpu": "x"},
    "results": [
        {
            "case": {"seconds": 5.0},
            "words_per_second": 10,
            "p99_ms": None,
            "use": {"spout": {"mib_median": 40.5, "processes": 1}},
        }
    ],
}


def test_figures_stand_by_their_place_and_what_a_case_asks_for_is_none():
    found = {"results.0.words_per_second": 10.0, "results.0.use.spout.mib_median": 40.5}
    assert dict(figures(DOCUMENT)) == found
    assert dict(figures([{"seconds": 2}, {"seconds": 3}])) == {"0.seconds": 2.0, "1.seconds": 3.0}


def test_more_than_one_is_better_whatever_is_measured():
    assert compared("words_per_second", [3.0, 3.0], [2.0, 2.0]).median == 1.5
    assert compared("use.spout.mib_median", [2.0, 2.0], [3.0, 3.0]).median == 1.5


def test_a_figure_that_is_0_somewhere_is_left_out(monkeypatch, tmp_path):
    runs = iter([{"seconds": 2, "words_per_second": 0}, {"seconds": 3, "words_per_second": 5}])
    monkeypatch.setattr(pairs, "_run", lambda *_: next(runs))
    assert [(found.figure, found.median) for found in rounds(tmp_path, ["idle"], 1)] == [("seconds", 1.5)]


@given(st.lists(st.floats(0.5, 2), min_size=1, max_size=12))
def test_the_interval_holds_the_median_and_is_the_same_each_time(values):
    low, high = interval(values, statistics.median)
    assert min(values) <= low <= statistics.median(values) <= high <= max(values)
    assert interval(values, statistics.median) == (low, high)


def test_a_commit_that_is_none_is_named():
    with pytest.raises(BenchmarkError, match="no-such-commit cannot be compared with"):
        checkout("no-such-commit")
