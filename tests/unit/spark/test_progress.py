"""The mark of a partition is the first batch that is not completely acked, in this life and the next."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.spark.index import Partition, StagedFile
from ardea.spark.progress import MAX_ROWS, JobProgress, ids_of, read_mark, write_mark


def partition(number, run="run-1", batches=1):
    return Partition(number, 0, (StagedFile(f"{run}/{number}", 1, "", 1, batches),))


@given(st.data(), st.lists(st.lists(st.integers(1, 4), max_size=4), min_size=1, max_size=3))
def test_the_mark_is_the_first_batch_with_a_gap(data, partitions):
    with tempfile.TemporaryDirectory() as folder:
        progress = JobProgress(Path(folder), itertools.count(1.0).__next__)
        batches = {(p, b): ids_of(p, b, rows) for p, sizes in enumerate(partitions) for b, rows in enumerate(sizes)}
        for p in range(len(partitions)):
            assert progress.begin(partition(p)) == (0, "")
            assert progress.mark(p) == 0
        for ids in batches.values():
            progress.emitted(ids)
        rows = [(key, tup_id) for key, ids in batches.items() for tup_id in ids]
        order = data.draw(st.permutations(rows))
        acked = order[: data.draw(st.integers(0, len(order)))]
        for _, tup_id in acked:
            progress.acked(tup_id)
        whole = {key for key, ids in batches.items() if {i for k, i in acked if k == key} == set(ids)}
        for p, sizes in enumerate(partitions):
            expected = next((b for b in range(len(sizes)) if (p, b) not in whole), len(sizes))
            assert progress.mark(p) == expected
            assert JobProgress(Path(folder)).begin(partition(p, "run-2")) == (expected, f"run-1/{p}")


def test_a_mark_is_written_ten_times_a_second_and_at_the_end_at_once(tmp_path):
    now = [100.0]
    progress = JobProgress(tmp_path, lambda: now[0])
    progress.begin(partition(3, batches=5))
    written = []
    for batch, seconds in enumerate((0.0, 0.05, 0.04, 0.02, 0.0)):
        now[0] += seconds
        ids = ids_of(3, batch, 2)
        progress.emitted(ids)
        progress.acked(ids[0], 2)
        written.append(read_mark(tmp_path, 3).batch)
    assert progress.mark(3) == 5
    assert written == [1, 1, 1, 4, 5]


@pytest.mark.parametrize(("seconds", "at_once", "kept"), [(0.05, False, 1), (0.1, False, 3), (0.0, True, 3)])
def test_what_was_acked_last_is_kept_too(tmp_path, seconds, at_once, kept):
    now = [100.0]
    progress = JobProgress(tmp_path, lambda: now[0])
    progress.begin(partition(3, batches=5))
    for batch in range(3):
        ids = ids_of(3, batch, 2)
        progress.emitted(ids)
        progress.acked(ids[0], 2)
    now[0] += seconds
    progress.keep(at_once=at_once)
    assert read_mark(tmp_path, 3).batch == kept


def test_late_acks_of_a_forgotten_partition_are_ignored(tmp_path):
    progress = JobProgress(tmp_path)
    ids = {number: ids_of(number, 0, 5) for number in (3, 4)}
    for number, rows in ids.items():
        progress.begin(partition(number))
        progress.emitted(rows)
    progress.forget(3)
    assert progress.acked(ids[3][0], 5) is None
    assert progress.acked(ids[4][0], 5) == 4


def test_several_processes_may_write_one_mark(tmp_path, monkeypatch):
    replace = Path.replace

    def another_one_first(path, target):
        monkeypatch.setattr(Path, "replace", replace)
        write_mark(tmp_path, 7, 2)
        assert read_mark(tmp_path, 7) == (2, "")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", another_one_first)
    write_mark(tmp_path, 7, 2)
    assert [path.name for path in tmp_path.iterdir()] == ["7"]
    assert read_mark(tmp_path, 7) == (2, "")


@given(st.sets(st.tuples(st.integers(0, 1 << 20), st.integers(0, (1 << 32) - 1)), min_size=2, max_size=5))
def test_no_two_rows_share_an_id(batches):
    ranges = [ids_of(partition, batch, MAX_ROWS) for partition, batch in sorted(batches)]
    assert all(a[-1] < b[0] for a, b in itertools.pairwise(ranges))
