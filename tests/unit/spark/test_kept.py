"""Effectively once: a partition's position is in snapshots, and its mark is that of the last one that counts."""

from __future__ import annotations

import pytest

from ardea.spark.kept import KeptProgress
from ardea.spark.progress import ids_of, read_mark, write_mark
from tests.unit.spark.test_progress import partition


def kept(folder, *items, tasks=1, index=0):
    return KeptProgress(folder, lambda: 0.0, items=items, owns=lambda number: number % tasks == index)


def test_a_mark_follows_the_snapshot_that_counts(tmp_path):
    progress = kept(tmp_path)
    assert progress.begin(partition(2, batches=2)) == (0, "")
    assert progress.take(1) == [[2, 0, "run-1/2"]]
    progress.emitted(ids_of(2, 0, 9))
    progress.acked(ids_of(2, 0, 9)[0], 9)
    assert progress.take(2) == [[2, 1, "run-1/2"]]
    progress.emitted(ids_of(2, 1, 9))
    assert progress.take(3) == [[2, 2, "run-1/2"]]
    assert (progress.mark(2), read_mark(tmp_path, 2).batch) == (0, 0)
    assert (progress.counts(1), progress.mark(2)) == ([], 0)
    assert (progress.counts(3), progress.mark(2)) == ([2], 2)
    assert read_mark(tmp_path, 2) == (2, "run-1/2")
    assert progress.counts(2) == [], "it will never count"


def test_of_snapshots_that_never_count_no_more_than_two_are_kept(tmp_path):
    """As while the store cannot be written."""
    progress = kept(tmp_path)
    progress.begin(partition(2, batches=1000))
    for number in range(1000):
        progress.emitted(ids_of(2, number, 9))
        progress.take(number)
    assert len(progress._taken) == 2
    assert (progress.counts(999), progress.mark(2), len(progress._taken)) == ([2], 1000, 0)


def test_a_restored_position_wins_over_what_is_written(tmp_path):
    write_mark(tmp_path, 4, 1, "run-1/4")
    progress = kept(tmp_path, [4, 3, "run-1/4"], [7, 1, "run-1/7"])
    assert progress.begin(partition(4, batches=5)) == (3, "run-1/4")
    assert progress.take(9) == [[4, 3, "run-1/4"], [7, 1, "run-1/7"]], "one that is not published again stays"
    progress.forget(7)
    progress.forget(4)
    assert progress.take(10) == []
    assert kept(tmp_path).begin(partition(4)) == (0, ""), "and what no snapshot has begins anew"


def test_a_rollback_before_the_news_of_its_snapshot_leaves_the_mark_of_that_snapshot(tmp_path):
    """Else the driver, which goes by the marks, would never remove what is read to its end."""
    former = kept(tmp_path)
    former.begin(partition(3))
    former.emitted(ids_of(3, 0, 9))
    items = former.take(7)
    assert read_mark(tmp_path, 3) == (0, "run-1/3")
    kept(tmp_path, *items).begin(partition(3))
    assert read_mark(tmp_path, 3) == (1, "run-1/3")


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_each_position_is_one_tasks(tmp_path, tasks):
    items = [[number, number, ""] for number in range(7)]
    shares = [kept(tmp_path, *items, tasks=tasks, index=index).take(1) for index in range(tasks)]
    assert sorted(item for share in shares for item in share) == items
