"""Files: what a Spark task writes is what a spout task reads, from any batch on, and nothing else is."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import ClusterError
from ardea.spark.reading import SharedFiles, batches_of
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder


def staged(folder, sizes, file_bytes=1 << 20):
    run = Run(Folder(str(folder)), "run-1", file_bytes, frozenset())
    (folder / "run-1").mkdir()
    start = 0
    batches = []
    for size in sizes:
        batches.append(pa.record_batch({"n": pa.array(range(start, start + size), pa.int64())}))
        start += size
    return write_partition(run, 7, 3, batches, folder), batches


@given(st.lists(st.integers(0, 300), max_size=6), st.sampled_from([1, 2000, 1 << 20]), st.integers(0, 7))
def test_what_is_written_is_read_from_any_batch_on(sizes, file_bytes, first):
    with tempfile.TemporaryDirectory() as name:
        partition, batches = staged(Path(name), sizes, file_bytes)
        kept = [batch for batch in batches if batch.num_rows]
        assert partition.rows == sum(sizes)
        assert sum(file.batches for file in partition.files) == len(kept)
        if file_bytes == 1:
            assert len(partition.files) == len(kept)
        found = list(batches_of(SharedFiles(Path(name)), partition, first))
        assert found == list(enumerate(kept))[first:]


def test_what_is_reported_is_on_disk(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(Path(f"/proc/self/fd/{descriptor}").readlink()))
    partition, _ = staged(tmp_path, [10, 10], file_bytes=1)
    assert len(partition.files) == 2
    places = [*(tmp_path / file.path for file in partition.files), tmp_path / "run-1", tmp_path]
    assert set(places) == set(synced)


def test_a_changed_file_is_refused(tmp_path):
    partition, _ = staged(tmp_path, [10])
    (path,) = (tmp_path / "run-1").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ClusterError, match="has changed since Spark wrote it"):
        list(batches_of(SharedFiles(tmp_path), partition, 0))


def test_a_missing_file_is_refused(tmp_path):
    partition, _ = staged(tmp_path, [10])
    (path,) = (tmp_path / "run-1").iterdir()
    path.unlink()
    with pytest.raises(ClusterError, match=r"part-00007-3-0\.arrow is gone"):
        list(batches_of(SharedFiles(tmp_path), partition, 0))
