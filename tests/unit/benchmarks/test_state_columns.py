"""Columns effectively once beside two other runs: which, in which order, and what is made of their rates."""

from __future__ import annotations

import pytest

from benchmarks.column_topology import Note
from benchmarks.results import BenchmarkError
from benchmarks.state_columns import in_turn, rate, says

ROWS = 4
IDS = ROWS * (ROWS - 1) // 2


def test_each_round_begins_with_another_run():
    ran = []

    def measured(kind, mode, rows, spouts):
        ran.append((kind, mode))
        assert (rows, spouts) == (100, 2)
        return {"effectively": 300.0, "atleast": 100.0, "atmost": 320.0}[mode]

    (result,) = in_turn(100, 2, 2, measured)
    ours, rows, most = ("columns", "effectively"), ("rows", "atleast"), ("columns", "atmost")
    assert ran == [ours, rows, most, rows, most, ours]
    assert (result.over("rows_atleast"), result.over("atmost")) == (3.0, 0.9375)
    assert "3.000 over as rows at least once, 0.938 over as columns at most once" in says(result)


def test_a_rate_is_from_the_first_row_emitted_to_the_last_one_in_the_sink():
    notes = {
        "spout-1": Note(0, began=3.0),
        "spout-2": Note(0, began=2.0),
        "sink-4": Note(ROWS, IDS, float(IDS), ended=4.0),
    }
    assert rate(notes, ROWS) == 2.0
    with pytest.raises(BenchmarkError, match="do not add up"):
        rate({**notes, "sink-4": Note(ROWS - 1, IDS, float(IDS), ended=4.0)}, ROWS)
