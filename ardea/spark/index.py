"""The index of what is staged: one line a partition, appended by the driver and followed by the spout's tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

INDEX = "index.jsonl"


class StagedFile(msgspec.Struct, frozen=True):
    """An Arrow IPC file.  ``path`` is relative to the staging folder; ``checksum`` is xxh3 (64 bits, hex)."""

    path: str
    bytes: int
    checksum: str
    rows: int
    batches: int


class Partition(msgspec.Struct, frozen=True, tag="partition"):
    """A published partition, which is also what a Spark task reports.  Its batches are numbered over all files."""

    number: int
    attempt: int
    files: tuple[StagedFile, ...]

    @property
    def rows(self) -> int:
        """Of all its files."""
        return sum(file.rows for file in self.files)


class Complete(msgspec.Struct, frozen=True, tag="complete"):
    """The last line: there is no other partition."""

    partitions: int
    rows: int


Line = Partition | Complete
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class IndexReader:
    """Follows an index that grows."""

    def __init__(self, folder: Path) -> None:
        """``folder`` need not be there yet."""
        self._path = folder / INDEX
        self._reset()

    def _reset(self, inode: int = 0) -> None:
        self._inode = inode
        self._offset = 0
        self.partitions: dict[int, Partition] = {}
        self.complete: Complete | None = None

    def poll(self) -> bool:
        """Reads what is new; True if there was anything.  Of an index that was begun anew, nothing former stays."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return False
        if status.st_ino == self._inode and status.st_size == self._offset:
            return False
        with self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                self._reset(inode)
            file.seek(self._offset)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            self._take(_decoder.decode(line))
        return bool(whole)

    def _take(self, line: Line) -> None:
        if isinstance(line, Complete):
            self.complete = line
        else:
            self.partitions[line.number] = line


class IndexWriter:
    """The driver's end.  What a former driver wrote is read first; a line that it did not finish is cut off."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / INDEX
        self._file = self._path.open("ab")
        self._file.truncate(self._whole_lines())
        self.known = IndexReader(folder)
        self.known.poll()

    def _whole_lines(self) -> int:
        return self._path.read_bytes().rfind(b"\n") + 1

    def publish(self, partition: Partition) -> bool:
        """Appends it, unless the partition is there already: the first report wins.  True if it was appended."""
        if partition.number in self.known.partitions:
            return False
        self._append(partition)
        return True

    def complete(self) -> Complete:
        """Says that nothing more will come."""
        partitions = self.known.partitions.values()
        line = Complete(len(partitions), sum(each.rows for each in partitions))
        self._append(line)
        return line

    def restart(self) -> None:
        """Begins anew; readers notice."""
        new = self._path.with_suffix(".new")
        with new.open("wb"):
            pass
        self._file.close()
        new.replace(self._path)
        self._file = self._path.open("ab")
        self.known.poll()
        assert not self.known.partitions

    def _append(self, line: Line) -> None:
        self._file.write(msgspec.json.encode(line) + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self.known.poll()

    def close(self) -> None:
        """Closes the file; the index stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


REPORTS = "reports"


def report_name(partition: Partition) -> str:
    """The file of a Spark task's report."""
    return f"{partition.number}-{partition.attempt}.json"


def write_report(run: Path, partition: Partition) -> None:
    """What a Spark task leaves for the driver, all at once."""
    name = report_name(partition)
    new = run / REPORTS / f".{name}"
    new.write_bytes(msgspec.json.encode(partition))
    new.replace(run / REPORTS / name)


class Reports:
    """What the tasks of a run have reported, each report once."""

    def __init__(self, run: Path) -> None:
        self._folder = run / REPORTS
        self._folder.mkdir(parents=True)
        self._seen: set[str] = set()

    def new(self) -> Iterator[Partition]:
        """Those that have come since."""
        for path in sorted(self._folder.iterdir()):
            if not path.name.startswith(".") and path.name not in self._seen:
                self._seen.add(path.name)
                yield msgspec.json.decode(path.read_bytes(), type=Partition)
