"""The benchmark of columns: what it stages, and that a run whose counters do not add up fails."""

from __future__ import annotations

import pytest

from ardea.spark.index import IndexReader
from ardea.spark.reading import SharedFiles, batches_of
from benchmarks.column_topology import Note
from benchmarks.columns import check, stage
from benchmarks.results import BenchmarkError

ROWS = 20_000
IDS = ROWS * (ROWS - 1) // 2
GOOD = {
    "spout-1": Note(ROWS - 5, began=2.0, ended=9.0),
    "spout-2": Note(5, began=3.0, ended=12.0),
    "sink-4": Note(ROWS, IDS, float(IDS)),
}


def test_every_row_is_staged_once(tmp_path):
    stage(tmp_path / "staged", ROWS)
    index = IndexReader(tmp_path / "staged")
    assert index.poll()
    assert index.complete is not None
    ids, amounts = [], 0.0
    for partition in index.partitions.values():
        for _, batch in batches_of(SharedFiles(tmp_path / "staged"), partition, 0):
            ids += batch.column(0).to_pylist()
            amounts += sum(batch.column(2).to_pylist())
            assert str(batch.schema.types) == "[DataType(int64), DataType(string), DataType(double)]"
    assert sorted(ids) == list(range(ROWS))
    assert 2 * amounts == IDS


def test_a_good_run_lasts_from_the_first_row_to_the_last_ack():
    assert check(GOOD, ROWS, 2) == 10.0


@pytest.mark.parametrize(
    "bad",
    [
        {"spout-2": Note(4)},
        {"sink-4": Note(ROWS - 1, IDS, float(IDS))},
        {"sink-4": Note(ROWS, IDS + 1, float(IDS))},
        {"sink-4": Note(ROWS, IDS, IDS / 2)},
        {"spout-3": Note(0)},
    ],
    ids=["unacked", "lost", "doubled", "spoilt", "a task too many"],
)
def test_counters_that_do_not_add_up_fail_the_run(bad):
    with pytest.raises(BenchmarkError, match="do not add up"):
        check({**GOOD, **bad}, ROWS, 2)
