"""Words counted in windows by event time, beside plain words: pairs of runs in turn."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from benchmarks.pairs import interval
from benchmarks.results import Case, Result


class WindowsResult(msgspec.Struct, frozen=True, kw_only=True):
    """Words a second, each round's.

    Attributes:
        median: of the rounds' ratios, windows over plain words.
        low, high: the 95 per cent interval of that median, by bootstrap.
    """

    windows: list[float]
    words: list[float]
    median: float
    low: float
    high: float


def rounds(case: Case, count: int, run: Callable[[Case], Result]) -> list[WindowsResult]:
    """So many pairs; who begins changes every round.

    Raises:
        BenchmarkError: a run gave no result.
    """
    rates: dict[str, list[float]] = {"windows": [], "words": []}
    for number in range(count):
        for workload in ("windows", "words") if number % 2 == 0 else ("words", "windows"):
            rates[workload].append(run(replace(case, workload=workload, rate=None)).words_per_second)
    ratios = [ours / plain for ours, plain in zip(rates["windows"], rates["words"], strict=True)]
    low, high = interval(ratios, statistics.median)
    return [WindowsResult(**rates, median=statistics.median(ratios), low=low, high=high)]


def says(each: WindowsResult) -> str:
    """For a terminal."""
    windows, words = statistics.median(each.windows), statistics.median(each.words)
    return (
        f"{windows:,.0f} words/s in windows of 100 rows of each of 10,000 keys, {words:,.0f} plain; median ratio of"
        f" {len(each.words)} rounds {each.median:.3f} ({each.low:.3f} to {each.high:.3f})"
    )
