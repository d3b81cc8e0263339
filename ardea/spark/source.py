"""The Python Data Source ``ardea``: rows in a folder that topologies read and write, too.

spark.dataSource.register(ArdeaSource)
spark.read.format("ardea").load("/folder")          df.write.format("ardea").mode("append").save("/folder")
spark.readStream.format("ardea").load("/folder")    df.writeStream.format("ardea").option("query", "q").start("/folder")
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from ardea.errors import UserError
from ardea.spark.index import INDEX, IndexReader, Partition, StreamIndexWriter
from ardea.spark.reading import SharedFiles, batches_of
from ardea.spark.schema import Column, ddl_of, parse_schema, type_of
from ardea.spark.spout import FILE_BYTES
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from ardea.spark.table import alone, arrow_schema, published, read_schema, write_schema

if TYPE_CHECKING:
    import pyarrow as pa


class ArdeaSource(DataSource):
    """Options: ``path``, and for streams that write ``query``, a name of its own for each checkpoint."""

    @classmethod
    def name(cls) -> str:
        """For ``format()``."""
        return "ardea"

    @property
    def _folder(self) -> Path:
        if not (path := self.options.get("path", "")).startswith("/"):
            raise UserError(f"format ardea takes the absolute path of a folder, not {path!r}")
        return Path(path)

    def schema(self) -> str:
        """As it was written."""
        return ddl_of(read_schema(self._folder))

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 -- the files have it
        """All that is committed when the query begins."""
        return _Reader(self._folder)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 -- Spark's name
        """What is committed, and then what comes."""
        return _StreamReader(self._folder)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """One commit."""
        return _Writer(self._folder, _ddl(schema), overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        """A commit for each micro-batch."""
        if overwrite:
            raise UserError(
                f"a streaming query cannot overwrite {self._folder} with each micro-batch",
                hint='Use outputMode("append"), or foreachBatch with mode("overwrite").',
            )
        if not (query := self.options.get("query")):
            raise UserError(
                f'a streaming query into {self._folder} takes option("query", NAME)',
                hint="Micro-batches are known by that name and their number: give each checkpoint one of its own.",
            )
        return _StreamWriter(self._folder, _ddl(schema), query)


def _ddl(schema: StructType) -> str:
    return ddl_of(Column(field.name, type_of(field.dataType)) for field in schema.fields)


@dataclass
class _Piece(InputPartition):
    folder: str
    partition: Partition


@dataclass
class _Written(WriterCommitMessage):
    partition: Partition


def _pieces(folder: Path, start: dict[str, int], end: dict[str, int] | None) -> list[InputPartition]:
    """Partitions from ``start`` on and below ``end``, by index; None: all there are."""
    return [
        _Piece(str(folder / name), partition)
        for name, partitions in published(folder).items()
        for partition in partitions
        if start.get(name, 0) <= partition.number and (end is None or partition.number < end.get(name, 0))
    ]


def _read(table: Path, piece: Any) -> Iterator[pa.RecordBatch]:
    """With every column nullable, as Spark expects of a source."""
    schema = arrow_schema(read_schema(table))
    for numbered in batches_of(SharedFiles(Path(piece.folder)), piece.partition, 0):
        if numbered is not None:
            yield numbered[1].cast(schema)


class _Reader(DataSourceReader):
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def partitions(self) -> Sequence[InputPartition]:
        return _pieces(self._folder, {}, None)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        return _read(self._folder, partition) if partition is not None else iter(())


class _StreamReader(DataSourceStreamReader):
    """An offset says for each index how many partitions of it are behind, and which stream of Spark's commits it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"stream": None, "behind": {}}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: ARG002, N802
        stream = self._stream()
        behind = {name: parts[-1].number + 1 for name, parts in published(self._folder).items() if parts}
        self._compare(start)
        return {"stream": stream, "behind": behind}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        pieces = _pieces(self._folder, start["behind"], end["behind"])
        self._compare(start)
        self._compare(end)  # behind the reading: it may be overwritten at any time
        return pieces

    def _stream(self) -> str | None:
        index = IndexReader(self._folder)
        index.poll()
        return None if index.head is None else index.head.stream

    def _compare(self, offset: dict[str, Any]) -> None:
        gone = any(not (self._folder / name / INDEX).exists() for name in offset["behind"])
        if gone or offset["stream"] not in (None, self._stream()):
            raise UserError(
                f"{self._folder} was overwritten since the query read it: what it has read is not there any more",
                hint="Begin the query again, with another checkpoint.",
            )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self._folder, partition)


class _Writing:
    """What batches and streams have in common; travels to Spark's tasks by pickle."""

    def __init__(self, folder: Path, ddl: str) -> None:
        self._folder, self._columns = folder, parse_schema(ddl)
        self._run = f"run-{secrets.token_hex(4)}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """A partition becomes files."""
        context = TaskContext.get()
        assert context is not None
        (self._folder / self._run).mkdir(parents=True, exist_ok=True)
        run = Run(Folder(str(self._folder)), self._run, FILE_BYTES, frozenset())
        number, attempt = context.partitionId(), context.taskAttemptId()
        return _Written(write_partition(run, number, attempt, iterator, self._folder))

    def _publish(self, messages: Sequence[Any], commit: str, *, overwrite: bool = False) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with alone(self._folder):
            write_schema(self._folder, self._columns, overwrite=overwrite)
            with StreamIndexWriter(self._folder) as index:
                if any(batch.run == commit for batch in index.known.batches.values()):
                    return  # Spark repeats a micro-batch whose commit it has not noted
                partitions = [message.partition for message in messages if message is not None]
                if overwrite:
                    index.replace_all(commit, partitions)
                    self._remove_others()
                else:
                    index.publish_batch(commit, partitions)

    def _remove_others(self) -> None:
        for folder in (*self._folder.glob("run-*"), *(index.parent for index in self._folder.glob(f"*/{INDEX}"))):
            if folder.name != self._run:
                shutil.rmtree(folder, ignore_errors=True)

    def _remove(self) -> None:
        shutil.rmtree(self._folder / self._run, ignore_errors=True)


class _Writer(_Writing, DataSourceArrowWriter):
    def __init__(self, folder: Path, ddl: str, *, overwrite: bool) -> None:
        super().__init__(folder, ddl)
        self._overwrite = overwrite

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._publish(messages, self._run, overwrite=self._overwrite)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        self._remove()


class _StreamWriter(_Writing, DataSourceStreamArrowWriter):
    def __init__(self, folder: Path, ddl: str, query: str) -> None:
        super().__init__(folder, ddl)
        self._name = query

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self._publish(messages, f"{self._name}-{batchId}")

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Files that no index names are not read."""
