"""What the comparison of the three modes runs, in which order, and what it makes of the rates."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.results import Case
from benchmarks.state import LargeResult, modes, says_large, says_modes

CASE = Case(workload="words", pending=20_000, batch=1000, drain_ms=10.0, seconds=20.0)


def test_the_modes_take_turns_and_each_round_begins_with_another_one():
    ran = []

    def run(case):
        ran.append(case.mode)
        return SimpleNamespace(words_per_second={"effectively": 120.0, "atleast": 100.0, "atmost": 150.0}[case.mode])

    (result,) = modes(CASE, 2, run)
    assert ran == ["effectively", "atleast", "atmost", "atleast", "atmost", "effectively"]
    assert result.over("atleast") == pytest.approx(1.2)
    assert "1.200 over atleast, 0.800 over atmost" in says_modes(result)


def test_what_snapshots_of_many_keys_cost_is_said_beside_a_run_without_them():
    result = LargeResult(
        rate=95.0,
        rate_without=100.0,
        pauses_ms=[1.25, 2.0],
        gap_ms=12.0,
        gap_without_ms=10.0,
        base_bytes=1000,
        delta_bytes=12,
    )
    said = says_large(result)
    assert "0.950 of those without" in said
    assert "pauses 1.2, 2.0 ms" in said
    assert "1.20% of the 1,000 bytes" in said
