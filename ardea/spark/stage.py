"""What runs in Spark's tasks: a partition becomes Arrow files and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from ardea.spark.index import Partition, StagedFile, write_report

if TYPE_CHECKING:
    import pyarrow as pa

STAGED = "partition int"
"""The schema, in DDL, of what :func:`stager` yields: the number of each partition."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the job.  ``name`` is its folder below ``folder``; partitions that are ``done`` are left out."""

    folder: str
    name: str
    file_bytes: int
    done: frozenset[int]

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder) / self.name


def stager(run: Run) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow``."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        if number not in run.done:
            write_report(run.path, write_partition(run, number, context.taskAttemptId(), batches))
        yield pyarrow.record_batch({"partition": pyarrow.array([number], pyarrow.int32())})

    return stage


def write_partition(run: Run, number: int, attempt: int, batches: Iterable[pa.RecordBatch]) -> Partition:
    """Writes the files of a partition, each ended when it has reached the run's ``file_bytes``."""
    files: list[StagedFile] = []
    writer: _FileWriter | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if writer is None:
            name = f"part-{number:05d}-{attempt}-{len(files)}.arrow"
            writer = _FileWriter(run, name, batch.schema)
        writer.write(batch)
        if writer.size >= run.file_bytes:
            files.append(writer.close())
            writer = None
    if writer is not None:
        files.append(writer.close())
    return Partition(number, attempt, tuple(files))


class _FileWriter:
    """One Arrow IPC file in the making."""

    def __init__(self, run: Run, name: str, schema: pa.Schema) -> None:
        import pyarrow

        self._relative = f"{run.name}/{name}"
        self._path = run.path / name
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
        size = self._path.stat().st_size
        return StagedFile(self._relative, size, checksum(self._path), self._rows, self._batches)


def checksum(path: Path) -> str:
    """xxh3 of a file, read a mebibyte at a time."""
    digest = xxhash.xxh3_64()
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            digest.update(buffer[:count])
    return digest.hexdigest()
