"""Pairs of runs with back pressure and without: what the managers of either do, and what is made of the rates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.pressure import NEEDED, WITH, WITHOUT, _customised, rounds
from benchmarks.results import BenchmarkError, Case

CASE = Case(workload="words", pending=20_000, batch=1000, drain_ms=10.0, seconds=5.0)
CALLS = """
from ardea.stream_manager.pauses import BackPressure

pressure = BackPressure(1, {}, {}, {})
consumer = type("Consumer", (), {"task": 1, "pausing": True})
noted = []
BackPressure.note_pause = lambda *args, **more: noted.append(args)
pressure.announce(None, consumer, 0.0)
print(len(noted))
"""


def announces(code: str, program: str) -> tuple[str, bool]:
    """What a process does that announces trouble: how often others hear of it, and whether the benchmark does."""
    with _customised(code) as folder:
        told = subprocess.run(
            [sys.executable, "-P", "-c", CALLS, program], stdout=subprocess.PIPE, text=True, check=True
        )
        return told.stdout.strip(), (folder / NEEDED).exists()


def test_only_managers_are_changed_and_trouble_is_noticed():
    before = os.environ.get("PYTHONPATH")
    assert announces(WITH, "ardea.stream_manager") == ("1", True)
    assert announces(WITHOUT, "ardea.stream_manager") == ("0", False)
    assert announces(WITHOUT, "ardea.heron_instance") == ("1", False)
    assert os.environ.get("PYTHONPATH") == before


def test_pairs_alternate():
    """Both runs of a round see one machine, and neither is always the first."""
    order = []

    def run(case):
        code = (customised() / "sitecustomize.py").read_text()
        order.append(code)
        return SimpleNamespace(words_per_second=98.0 if code == WITH else 100.0)

    comparison = rounds(CASE, 3, run)
    assert order == [WITH, WITHOUT, WITHOUT, WITH, WITH, WITHOUT]
    assert [each.ratio for each in comparison.rounds] == [0.98] * 3
    assert comparison.ratio_median == 0.98


def test_a_round_in_which_it_was_needed_says_nothing():
    def run(case):
        (customised() / NEEDED).touch()
        return SimpleNamespace(words_per_second=1.0)

    with pytest.raises(BenchmarkError, match="more waiting than it may have"):
        rounds(CASE, 1, run)


def customised() -> Path:
    return Path(os.environ["PYTHONPATH"].partition(os.pathsep)[0])
