"""The topologies of slow-spout, on simulated time, and what is made of their numbers."""

from __future__ import annotations

import json

import pytest

from ardea.testing import run
from benchmarks import slow_spout
from benchmarks.slow_spout import SPOUTS, Passes, Sleeps, result_of, topology


@pytest.mark.parametrize("kind", [*SPOUTS, Passes])
def test_each_topology_can_be_run(kind, tmp_path):
    assert topology(kind, str(tmp_path), 5.0).plan()["arrives"].inputs


def test_one_of_them_writes_what_its_rows_took(tmp_path, monkeypatch):
    monkeypatch.setattr(slow_spout, "WARMUP", 0.0)
    run(topology(Sleeps, str(tmp_path), 0.4))
    took = json.loads((tmp_path / "arrives.json").read_text())
    assert took, "at least one was emitted once the reader was up"
    assert min(took) > 0


def test_quantiles_are_of_milliseconds():
    result = result_of(Sleeps, [number / 1000 for number in range(101)])
    assert (result.component, result.rows) == ("Sleeps", 101)
    assert (result.p50_ms, result.p99_ms) == pytest.approx((50.0, 99.0))
