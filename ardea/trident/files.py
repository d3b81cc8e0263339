"""Sources that are directories of files; a file is a partition, and its position what a batch took of it."""

from __future__ import annotations

import csv
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from ardea.errors import ConfigError, StateError, TopologyError, UserError, is_text, printable
from ardea.protocol.keys import MAX_DEPTH
from ardea.protocol.values import RowCodec
from ardea.trident.operations import Collector
from ardea.trident.partitioned import PartitionedSpout
from ardea.trident.spout import Attempt
from ardea.trident.tuples import Fields, Row, names_of

_LOOK = 1 << 16
_CODEC = RowCodec()


class FileSpout(PartitionedSpout):
    """What all of them share.  Files may appear and grow; they must not change where they were read.

    All tasks need to see the directory, which may not exist yet.
    """

    def __init__(
        self, path: str | Path, *, pattern: str, outputs: Fields, most: int, follow: bool, opaque: bool
    ) -> None:
        if "/" in pattern or pattern == "**":
            raise TopologyError(
                [f"{type(self).__name__}: pattern= is of names of files in the directory itself, not {pattern!r}"],
                hint="Give each directory a spout, and merge their streams.",
            )
        self.outputs = names_of(outputs)
        self.opaque = self.committing = opaque
        self._path, self._pattern, self._most, self._follow = Path(path), pattern, most, follow

    @abstractmethod
    def read(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[Row | None, int]]:
        """Rows from a position on, each with the position after it; None for what is passed over.

        ``end``: where a batch that comes again has ended, even if the file goes on there.
        """

    @abstractmethod
    def more(self, file: BinaryIO, start: int) -> bool:
        """Whether there is something to read behind the position."""

    def partitions(self) -> Sequence[str]:
        """The files' names.

        Raises:
            UserError: one is no UTF-8, as names of partitions are.
        """
        names = sorted(file.name for file in self._path.glob(self._pattern) if file.is_file())
        if strange := [name for name in names if not is_text(name)]:
            what = f"{self._path} has a file whose name is no UTF-8: {printable(strange[0], 200)}"
            raise UserError(what, hint="Rename it, or give a pattern= that it does not fit.")
        return names

    def emit_new(self, attempt: Attempt, partition: str, last: Any, collector: Collector) -> list[int]:  # noqa: ARG002
        """The next rows; the position is [where they begin, where they end].  Of a file that is gone, none."""
        start = end = last[1] if last else 0
        count = 0
        try:
            file = (self._path / partition).open("rb")
        except FileNotFoundError:
            return [start, end]
        with file:
            for row, end in self.read(file, start):  # noqa: B007 -- it is the position
                if row is not None:
                    collector.emit(row)
                    count += 1
                if count >= self._most:
                    break
        return [start, end]

    def emit_again(self, attempt: Attempt, partition: str, position: Any, collector: Collector) -> None:
        """The same rows.

        Raises:
            StateError: the file is gone, or shorter; the batch is tried until it is back.
        """
        start, end = position
        if end == start:
            return
        behind = start
        try:
            with (self._path / partition).open("rb") as file:
                for row, behind in self.read(file, start, end):  # noqa: B007 -- it is the position
                    if row is not None:
                        collector.emit(row)
        except FileNotFoundError:
            behind = -1
        if behind != end:
            raise StateError(
                f"transaction {attempt.txid} needs {start} to {end} of partition {partition} again, and"
                f" {self._path / partition} {'is gone' if behind < 0 else 'has changed'}; it is tried until it is back",
                hint="put the file back as it was, or use an opaque spout",
            )

    def is_ready(self, positions: Mapping[str, Any]) -> bool:
        """Whether a file has a row to emit."""
        return any(self._has_more(name, positions.get(name)) for name in self.partitions())

    def finished(self, positions: Mapping[str, Any]) -> bool:
        """Whether all files have been read, if they are not followed."""
        return not self._follow and not self.is_ready(positions)

    def _has_more(self, name: str, position: Any) -> bool:
        try:
            with (self._path / name).open("rb") as file:
                return self.more(file, position[1] if position else 0)
        except FileNotFoundError:
            return False
        except ConfigError:
            raise
        except (OSError, UserError):
            return True  # the batch that reads it says what is wrong


class TextSpout(FileSpout):
    """Rows of lines; a position is a byte.  A followed file's last line counts when its end is there."""

    def more(self, file: BinaryIO, start: int) -> bool:
        """Whether there is a line."""
        file.seek(start)
        rest = file.read(_LOOK)
        return bool(rest) and (not self._follow or b"\n" in rest or len(rest) == _LOOK)

    def lines(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[bytes, int]]:
        """Complete lines, and the byte behind each; the last one up to ``end`` may have been longer since."""
        file.seek(start)
        for found in file:
            if start == end or (end is None and self._follow and not found.endswith(b"\n")):
                return
            line = found if end is None else found[: end - start]
            start += len(line)
            yield line, start


class JsonLinesSpout(TextSpout):
    """Emits the fields of JSON objects, one a line; a missing one is None."""

    def __init__(self, path: str | Path, fields: Fields, *, skip_malformed: bool, **options: Any) -> None:
        super().__init__(path, outputs=fields, **options)
        self._skip = skip_malformed

    @classmethod
    def transactional(
        cls,
        path: str | Path,
        fields: Fields,
        *,
        pattern: str = "*.jsonl",
        rows: int = 1000,
        follow: bool = False,
        skip_malformed: bool = False,
    ) -> Self:
        """Repeats batches exactly.

        Args:
            path: the directory.
            fields: the keys to emit.
            pattern: of the file names.
            rows: most rows of a file in one batch.
            follow: wait for more lines and files, for ever.
            skip_malformed: pass over lines that are no objects, and those with a value that cannot be emitted, as half
                a surrogate pair; else they fail their batch, with an error.
        """
        skip = skip_malformed
        return cls(path, fields, skip_malformed=skip, pattern=pattern, most=rows, follow=follow, opaque=False)

    @classmethod
    def opaque_transactional(
        cls,
        path: str | Path,
        fields: Fields,
        *,
        pattern: str = "*.jsonl",
        rows: int = 1000,
        follow: bool = False,
        skip_malformed: bool = False,
    ) -> Self:
        """The same as an opaque spout: a batch that is repeated may have grown."""
        skip = skip_malformed
        return cls(path, fields, skip_malformed=skip, pattern=pattern, most=rows, follow=follow, opaque=True)

    def read(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[Row | None, int]]:
        """Blank lines are passed over."""
        for line, behind in self.lines(file, start, end):
            yield (self._row(file, line, behind) if line.strip() else None), behind

    def _row(self, file: BinaryIO, line: bytes, end: int) -> Row | None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        wrong = "are no JSON object"
        if isinstance(found, dict):
            row = tuple([found.get(name) for name in self.outputs])
            if not (wrong := _unsendable(line, row)):
                return row
        if self._skip:
            return None
        raise UserError(
            f"{file.name}: bytes {end - len(line)} to {end} {wrong}: {line[:80]!r}",
            hint="correct the line, or pass skip_malformed=True",
        )


def _unsendable(line: bytes, row: Row) -> str:
    """What is wrong with the row of a line; mostly nothing, which is soon seen."""
    if line.isascii() and b"\\u" not in line and line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return ""
    try:
        refusal = _CODEC.explain([row])
    except LookupError:
        return ""
    return f"have a value that cannot be emitted ({refusal.type}: {refusal.reason})"


class CsvSpout(TextSpout):
    """Emits columns of CSV files as texts; the first record of each file names its columns."""

    def __init__(self, path: str | Path, fields: Fields, *, delimiter: str, **options: Any) -> None:
        super().__init__(path, outputs=fields, **options)
        self._delimiter = delimiter

    @classmethod
    def transactional(
        cls,
        path: str | Path,
        fields: Fields,
        *,
        pattern: str = "*.csv",
        rows: int = 1000,
        follow: bool = False,
        delimiter: str = ",",
    ) -> Self:
        """Repeats batches exactly.

        Args:
            path: the directory.
            fields: the columns to emit.
            pattern: of the file names.
            rows: most records of a file in one batch.
            follow: wait for more records and files, for ever.
            delimiter: between values.
        """
        return cls(path, fields, pattern=pattern, most=rows, follow=follow, opaque=False, delimiter=delimiter)

    @classmethod
    def opaque_transactional(
        cls,
        path: str | Path,
        fields: Fields,
        *,
        pattern: str = "*.csv",
        rows: int = 1000,
        follow: bool = False,
        delimiter: str = ",",
    ) -> Self:
        """The same as an opaque spout: a batch that is repeated may have grown."""
        return cls(path, fields, pattern=pattern, most=rows, follow=follow, opaque=True, delimiter=delimiter)

    def read(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[Row | None, int]]:
        """A record may have several lines; the header is passed over."""
        records = self._records(file, 0, end)
        header, first = next(records, ([], 0))
        if not header:
            return
        if missing := [name for name in self.outputs if name not in header]:
            raise UserError(f"{file.name} has no column {', '.join(missing)}; it has {', '.join(header)}")
        places = [header.index(name) for name in self.outputs]
        if start < first:
            yield None, first
        for record, behind in self._records(file, max(start, first), end):
            if record and len(record) != len(header):
                raise UserError(
                    f"{file.name}: the record before byte {behind} has {len(record)} values, not {len(header)}"
                )
            yield (tuple([record[place] for place in places]) if record else None), behind

    def _records(self, file: BinaryIO, start: int, end: int | None) -> Iterator[tuple[list[str], int]]:
        behind, ended = start, False

        def texts() -> Iterator[str]:
            nonlocal behind, ended
            for line, behind in self.lines(file, start, end):  # noqa: B007
                yield line.decode("utf-8-sig" if start == 0 else "utf-8", errors="replace")
            ended = True

        try:
            for record in csv.reader(texts(), delimiter=self._delimiter, strict=True):
                yield record, behind
        except csv.Error as error:
            if self._follow and ended:
                return  # the rest of the record is still to come
            raise UserError(
                f"{file.name}: the record that ends at byte {behind} is no CSV: {error}; its batch comes again",
                hint="correct the record; for longer values call csv.field_size_limit() in the topology's file",
            ) from error


class ParquetSpout(FileSpout):
    """Emits columns of Parquet files, which appear whole; a position is a row.  Needs ``ardea[arrow]``."""

    @classmethod
    def transactional(
        cls, path: str | Path, fields: Fields, *, pattern: str = "*.parquet", rows: int = 10_000, follow: bool = False
    ) -> Self:
        """Repeats batches exactly.

        Args:
            path: the directory; move files into it when they are complete.
            fields: the columns to emit.
            pattern: of the file names.
            rows: most rows of a file in one batch.
            follow: wait for more files, for ever.
        """
        return cls(path, pattern=pattern, outputs=fields, most=rows, follow=follow, opaque=False)

    @classmethod
    def opaque_transactional(
        cls, path: str | Path, fields: Fields, *, pattern: str = "*.parquet", rows: int = 10_000, follow: bool = False
    ) -> Self:
        """The same as an opaque spout: a batch that is repeated goes on without a file that is gone."""
        return cls(path, pattern=pattern, outputs=fields, most=rows, follow=follow, opaque=True)

    def read(self, file: BinaryIO, start: int, end: int | None = None) -> Iterator[tuple[Row | None, int]]:
        """A row group at a time."""
        parquet = _parquet(file)
        with _naming(file):
            names = parquet.schema_arrow.names
        if missing := [name for name in self.outputs if name not in names]:
            raise UserError(f"{file.name} has no column {', '.join(missing)}")
        first = 0
        for number in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(number).num_rows
            if first + count > start and (end is None or first < end):
                skipped = max(0, start - first)
                most = None if end is None else end - first - skipped
                with _naming(file):
                    table = parquet.read_row_group(number, columns=list(self.outputs)).select(list(self.outputs))
                    columns = [column.to_pylist() for column in table.slice(skipped, most).columns]
                for place, row in enumerate(zip(*columns, strict=True), first + skipped + 1):
                    yield row, place
            first += count

    def more(self, file: BinaryIO, start: int) -> bool:
        """Whether it has more rows."""
        return bool(_parquet(file).metadata.num_rows > start)


def _parquet(file: BinaryIO) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ConfigError("a ParquetSpout needs pyarrow", hint="pip install 'ardea[arrow]'") from error
    with _naming(file):
        return ParquetFile(file)


@contextmanager
def _naming(file: BinaryIO) -> Iterator[None]:
    """Arrow's errors, some of which are plain ones of Python, say nothing of the file."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise UserError(
            f"{file.name} cannot be read as Parquet: {error}; its batch comes again",
            hint="put a whole file in its place",
        ) from error
