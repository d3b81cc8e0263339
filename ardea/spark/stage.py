"""What runs in Spark's tasks: a partition becomes Arrow files and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from ardea.spark.index import Partition, StagedFile
from ardea.spark.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

STAGED = "staged int"
"""The schema, in DDL, of what :func:`stager` yields: one row a partition, which says nothing more."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the job: ``name`` is its folder in the storage; partitions that are ``done`` are left out."""

    storage: Storage
    name: str
    file_bytes: int
    done: frozenset[int]


def stager(run: Run) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import SparkFiles, TaskContext

        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        if number not in run.done:
            scratch = Path(SparkFiles.getRootDirectory())
            run.storage.report(run.name, write_partition(run, number, context.taskAttemptId(), batches, scratch))
        # Arrow imports pandas to make an array of a Python value, and each worker would wait for it.
        yield pyarrow.record_batch([pyarrow.nulls(1, pyarrow.int32())], ["staged"])

    return stage


def write_partition(run: Run, number: int, attempt: int, batches: Iterable[pa.RecordBatch], scratch: Path) -> Partition:
    """Writes the files of a partition, each ended when it has reached the run's ``file_bytes``."""
    files: list[StagedFile] = []
    writer: _FileWriter | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            name = f"{run.name}/part-{number:05d}-{attempt}-{len(files)}.arrow"
            writer = _FileWriter(run.storage, name, batch.schema, scratch)
        writer.write(batch)
        if writer.size >= run.file_bytes:
            files.append(writer.close())
            writer = None
    if writer is not None:
        files.append(writer.close())
    return Partition(number, attempt, tuple(files))


class _FileWriter:
    """One Arrow IPC file in the making."""

    def __init__(self, storage: Storage, name: str, schema: pa.Schema, scratch: Path) -> None:
        import pyarrow

        self._storage, self._name = storage, name
        self._path = storage.draft(name, scratch)
        self._sink = pyarrow.OSFile(str(self._path), "wb")
        self._writer = pyarrow.ipc.new_file(self._sink, schema)
        self._rows = self._batches = 0

    @property
    def size(self) -> int:
        return int(self._sink.tell())

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)
        self._rows += batch.num_rows
        self._batches += 1

    def close(self) -> StagedFile:
        self._writer.close()
        self._sink.close()
        file = StagedFile(self._name, self._path.stat().st_size, checksum(self._path), self._rows, self._batches)
        self._storage.store(self._path, self._name, file.checksum)
        return file


def checksum(path: Path) -> str:
    """xxh3 of a file, read a mebibyte at a time."""
    digest = xxhash.xxh3_64()
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
