"""Words counted in windows by event time, beside plain words and, where it is installed, beside Bytewax: in turn."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from benchmarks.baseline import parse_rate
from benchmarks.pairs import interval
from benchmarks.results import BenchmarkError, Case, Result

ROOT = Path(__file__).parents[1]
PEER = ROOT / "benchmarks" / "peers" / "bytewax_windows.py"
PEERS_PYTHON = ROOT / "build" / "bytewax" / "bin" / "python"


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """The median of the rounds' ratios, and its 95 per cent interval by bootstrap."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, ours: list[float], theirs: list[float]) -> Ratio:
        ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
        low, high = interval(ratios, statistics.median)
        return cls(median=statistics.median(ratios), low=low, high=high)

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


class WindowsResult(msgspec.Struct, frozen=True, kw_only=True):
    """Words a second, each round's, by what was run; ``over``: windows over each other one."""

    rates: Mapping[str, list[float]]
    over: Mapping[str, Ratio]


def rounds(case: Case, count: int, run: Callable[[Case], Result]) -> list[WindowsResult]:
    """So many rounds; who begins changes every round.

    Raises:
        BenchmarkError: a run gave no result.
    """
    runs: dict[str, Callable[[], float]] = {
        name: lambda name=name: run(replace(case, workload=name, rate=None)).words_per_second  # type: ignore[misc]
        for name in ("windows", "words")
    }
    if PEERS_PYTHON.exists():
        runs["bytewax"] = lambda: _peer(case)
    rates: dict[str, list[float]] = {name: [] for name in runs}
    order = list(runs)
    for number in range(count):
        first = number % len(order)
        for name in (*order[first:], *order[:first]):
            rates[name].append(runs[name]())
    over = {name: Ratio.of(rates["windows"], found) for name, found in rates.items() if name != "windows"}
    return [WindowsResult(rates=rates, over=over)]


def _peer(case: Case) -> float:
    command = [PEERS_PYTHON, PEER, "--seconds", f"{case.seconds:g}", "--warmup", f"{case.warmup:g}"]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=60 + case.seconds)
    except (subprocess.SubprocessError, OSError) as error:
        raise BenchmarkError(f"Bytewax did not run: {error}") from None
    return parse_rate(done.stdout)


def says(each: WindowsResult) -> str:
    """For a terminal."""

    def parts() -> Iterator[str]:
        for name, rates in each.rates.items():
            ratio = f" (windows are {each.over[name]} of it)" if name in each.over else ""
            yield f"{name} {statistics.median(rates):,.0f} words/s{ratio}"

    rounds = len(each.rates["words"])
    return f"windows of 100 rows of each of 10,000 keys, medians of {rounds} rounds: {', '.join(parts())}"
