"""Pairs of runs, this tree's and a commit's, in turn on one machine, and what their ratios say of each figure."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.results import BenchmarkError

ROOT = Path(__file__).parents[1]
RESAMPLES = 2000
# What is compared, and whether more of it is better.
FIGURES: Mapping[str, bool] = {
    "words_per_second": True,
    "rows_per_second": True,
    "batches_per_second": True,
    "p50_ms": False,
    "p99_ms": False,
    "mib_median": False,
    "seconds": False,
}


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of all rounds.

    Attributes:
        figure: where it stands in the benchmark's document, such as ``0.words_per_second``.
        ours, theirs: its values, round by round.
        median: of the ratios of each round, turned so that more than 1 is better.
        low, high: the 95 per cent interval of that median, by bootstrap.
    """

    figure: str
    ours: list[float]
    theirs: list[float]
    median: float
    low: float
    high: float


def checkout(commit: str) -> Path:
    """That commit with a virtual environment of its own, below ``build/``; made once.

    Raises:
        BenchmarkError: git knows no such commit, or its environment cannot be made.
    """
    try:
        name = _output_of("git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}")
        folder = ROOT / "build" / "commits" / name[:12]
        if not (folder / "Makefile").exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            _output_of("git", "clone", "--quiet", "--no-checkout", str(ROOT), str(folder))
            _output_of("git", "-C", str(folder), "checkout", "--quiet", name)
        _output_of("make", "-C", str(folder), ".venv/.installed")
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip() or f"exit code {error.returncode}"
        raise BenchmarkError(f"{commit} cannot be compared with: {reason}") from None
    return folder


def rounds(against: Path, arguments: Sequence[str], count: int) -> list[Compared]:
    """Runs the benchmark with these arguments so often in each tree; who begins changes every round.

    Figures that are 0 somewhere, as the words of a topology that does nothing, have no ratio and are left out.
    """
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(count):
        turns = [(ROOT, ours), (against, theirs)]
        for folder, found in turns if number % 2 == 0 else reversed(turns):
            found.append(dict(figures(_run(folder, arguments))))
    names = [name for name in ours[0] if all(found.get(name, 0.0) > 0.0 for found in (*ours, *theirs))]
    return [compared(name, [each[name] for each in ours], [each[name] for each in theirs]) for name in names]


def figures(document: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Those of ``FIGURES`` in a benchmark's document, by their place in it; its description of the case is left out."""
    if isinstance(document, list):
        document = dict(enumerate(document))
    if not isinstance(document, dict):
        return
    for key, value in document.items():
        if key in FIGURES and isinstance(value, int | float):
            yield f"{path}{key}", float(value)
        elif key != "case":
            yield from figures(value, f"{path}{key}.")


def compared(figure: str, ours: list[float], theirs: list[float]) -> Compared:
    """The ratio of each round, their median, and how far that median may lie from the true one."""
    more_is_better = FIGURES[figure.rpartition(".")[2]]
    pairs = zip(ours, theirs, strict=True)
    ratios = [our / their if more_is_better else their / our for our, their in pairs]
    low, high = interval(ratios, statistics.median)
    return Compared(figure=figure, ours=ours, theirs=theirs, median=statistics.median(ratios), low=low, high=high)


def interval(values: Sequence[float], of: Callable[[Sequence[float]], float]) -> tuple[float, float]:
    """The 95 per cent interval of a statistic, by bootstrap; the same values give the same interval."""
    draw = random.Random(1)
    found = sorted(of(draw.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return found[int(RESAMPLES * 0.025)], found[int(RESAMPLES * 0.975) - 1]


def _run(folder: Path, arguments: Sequence[str]) -> Any:
    command = [str(folder / ".venv" / "bin" / "python"), "-m", "benchmarks", *arguments, "--output", "json"]
    # Without what this process was started with, which leads to this tree.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command)} in {folder} gave no result, but exit code {done.returncode}")
    return json.loads(done.stdout)


def _output_of(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    if command[0] == "make":
        sys.stderr.write(done.stdout)
    return done.stdout.strip()
