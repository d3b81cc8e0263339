"""Alternates our words or sentences with another program's, so that both have the same machine."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.results import BenchmarkError, Case, Comparison, Result, Round, compare

RATE = re.compile(r"([\d,]+) words/s (?:acked|counted)")
STARTS_AND_ENDS_WITHIN = 60.0


def command_of(file: Path, case: Case) -> list[str]:
    """How the baseline is called; it takes batch and pending in words, as a :class:`Case` does."""
    command = [sys.executable, str(file), case.workload, "--seconds", f"{case.seconds:g}"]
    command += ["--batch", str(case.batch), "--pending", str(case.pending), "--bolts", str(case.counters)]
    return command if case.mode == "atleast" else [*command, "--no-ack"]


def parse_rate(output: str) -> float:
    """The words/s that the baseline printed; of several counting bolts, their sum.

    Raises:
        BenchmarkError: it printed none, or 0.
    """
    rate = sum(float(number.replace(",", "")) for number in RATE.findall(output))
    if not rate:
        raise BenchmarkError(f"the baseline printed no `N words/s acked`, but {output.strip()[-400:]!r}")
    return rate


def check_comparable(case: Case) -> None:
    """The baseline has one spout and one manager, and sends as fast as it can."""
    if (case.workload not in ("words", "sentences")) or case.rate or (case.spouts, case.containers) != (1, 1):
        raise BenchmarkError("--baseline goes with words or sentences, one spout, one container and no --rate")


def rounds_against(
    file: Path, case: Case, rounds: int, run: Callable[[Case], Result]
) -> tuple[Comparison, list[Result]]:
    """So many rounds, each with ours first and the baseline after it."""
    check_comparable(case)
    results, pairs = [], []
    for _ in range(rounds):
        ours = run(case)
        results.append(ours)
        pairs.append(Round(ours.words_per_second, rate_of(file, case)))
    return compare(pairs, " ".join(command_of(file, case)), case), results


def rate_of(file: Path, case: Case) -> float:
    """The words/s of one run of the baseline.

    Raises:
        BenchmarkError: it fails, or does not end.
    """
    command = command_of(file, case)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=case.seconds + STARTS_AND_ENDS_WITHIN, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise BenchmarkError(f"the baseline did not end within {error.timeout:g} s: {' '.join(command)}") from error
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().rpartition("\n")[2]
        raise BenchmarkError(f"the baseline ended with {error.returncode}: {last} ({' '.join(command)})") from error
    return parse_rate(done.stdout)
