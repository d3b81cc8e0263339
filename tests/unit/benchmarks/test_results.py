"""The arithmetic on what a run gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.results import (
    MIB,
    BenchmarkError,
    Case,
    Round,
    SweepRow,
    bins_quantile,
    check_counts,
    compare,
    count_at,
    defaults_share,
    last_count,
    merge_bins,
    per_million,
    summarise_use,
)
from benchmarks.topologies import BINS_PER_SECOND, LAST_BIN, Line

CASE = Case(workload="words", pending=20_000, batch=1000, drain_ms=10.0, seconds=5.0)


def test_counters_that_add_up_give_both_sums():
    assert check_counts({"words-1": 30, "words-2": 12}, {"count-3": 40, "count-4": 2}, 1) == (42, 42)


def test_a_sentence_counts_as_ten_words():
    assert check_counts({"sentences-1": 3}, {"count-2": 30}, 10) == (30, 30)


@pytest.mark.parametrize("counted", [41, 43])
def test_a_tuple_lost_or_counted_twice_fails_the_run_and_names_the_tasks(counted):
    with pytest.raises(BenchmarkError, match=rf"42 words acked, {counted} counted \(words-1 42, count-2 {counted}\)"):
        check_counts({"words-1": 42}, {"count-2": counted}, 1)


def test_the_last_line_tells_what_was_counted():
    assert last_count([Line(1.0, 5), Line(2.0, 9, over=True)], "words-1") == 9


@pytest.mark.parametrize("lines", [[], [Line(1.0, 5)]])
def test_a_task_that_did_not_close_fails_the_run(lines):
    with pytest.raises(BenchmarkError, match="words-1 did not close"):
        last_count(lines, "words-1")


@given(
    gaps=st.lists(st.tuples(st.floats(0.01, 10), st.integers(0, 10**9)), min_size=1),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_counts_between_samples_never_fall_and_meet_the_samples(gaps, shares):
    lines = [Line(0.0, 0)]
    for seconds, tuples in gaps:
        lines.append(Line(lines[-1].at + seconds, lines[-1].tuples + tuples))
    early, late = sorted(lines[-1].at * share for share in shares)
    assert count_at(lines, early) <= count_at(lines, late) + 1e-6 * lines[-1].tuples
    assert all(count_at(lines, line.at) == pytest.approx(line.tuples) for line in lines)


def test_a_time_halfway_between_samples_has_half_the_tuples():
    assert count_at([Line(1.0, 100), Line(3.0, 300), Line(4.0, 900)], 2.0) == 200.0


@pytest.mark.parametrize("at", [0.5, 4.5])
def test_a_window_beyond_the_samples_fails_the_run(at):
    with pytest.raises(BenchmarkError, match="do not cover"):
        count_at([Line(1.0, 100), Line(4.0, 300)], at)


def test_quantiles_are_the_middle_of_their_bin_in_milliseconds():
    bins = {10: 98, 200: 1, 400: 1}
    assert bins_quantile(bins, 0.5) == pytest.approx(10.5 * 1000 / BINS_PER_SECOND)
    assert bins_quantile(bins, 0.99) == pytest.approx(200.5 * 1000 / BINS_PER_SECOND)


def test_the_last_bin_stands_for_its_lower_end():
    assert bins_quantile({LAST_BIN: 1}, 0.5) == 1000.0


def test_nothing_observed_has_no_quantile():
    assert bins_quantile({}, 0.5) is None


@given(st.lists(st.integers(0, LAST_BIN - 1), min_size=1), st.sampled_from([0.0, 0.01, 0.25, 0.5, 0.75, 0.99, 1.0]))
def test_a_quantile_has_its_share_of_tuples_at_or_below_it(latencies, q):
    bins = {bin_: latencies.count(bin_) for bin_ in latencies}
    found = bins_quantile(bins, q)
    assert found is not None
    bin_ = int(found * BINS_PER_SECOND / 1000)
    assert sum(each <= bin_ for each in latencies) >= q * len(latencies)
    assert sum(each < bin_ for each in latencies) <= q * len(latencies)


@given(st.lists(st.dictionaries(st.integers(0, 50), st.integers(1, 9))))
def test_bins_of_several_spouts_add_up(parts):
    merged = merge_bins(Line(0.0, 0, over=True, latencies=part) for part in parts)
    assert all(count == sum(part.get(bin_, 0) for part in parts) for bin_, count in merged.items())
    assert sum(merged.values()) == sum(sum(part.values()) for part in parts)


def test_the_ratio_is_ours_over_the_baseline_and_the_median_that_of_the_rounds():
    rounds = [Round(100.0, 50.0), Round(10.0, 100.0), Round(80.0, 100.0)]
    assert [each.ratio for each in rounds] == [2.0, 0.1, 0.8]
    comparison = compare(rounds, "python other.py", CASE)
    assert (comparison.ratio_median, comparison.pending, comparison.batch) == (0.8, 20_000, 1000)


def test_cpu_is_for_a_million_words():
    assert per_million(3.0, 2_000_000) == 1.5
    assert per_million(3.0, 0) is None


def test_use_is_summarised_by_kind():
    use = summarise_use({"count": [3 * MIB, MIB, 8 * MIB], "words": [MIB]}, {"count": [0.5, 0.1, 0.2], "words": [1.0]})
    count = use["count"]
    assert (count.processes, count.mib_min, count.mib_median, count.mib_max) == (3, 1.0, 3.0, 8.0)
    assert (count.cpu_median, count.cpu_max) == (20.0, 50.0)
    assert use["words"].cpu_max == 100.0


def test_the_defaults_share_is_of_the_best_rate():
    rows = [SweepRow("knob", 1, False, 50.0, None, None), SweepRow("knob", 2, True, 38.0, None, None)]
    assert defaults_share(rows) == 0.76
