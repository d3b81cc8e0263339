"""The index of what is staged: a line for each partition or micro-batch.  The driver writes, spout tasks follow."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from ardea.errors import UserError

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

    @property
    def batches(self) -> int:
        """Of all its files."""
        return sum(file.batches for file in self.files)

    @property
    def source(self) -> str:
        """The path of its first file, which no other run or attempt has; empty if it has no rows."""
        return self.files[0].path if self.files else ""


class Complete(msgspec.Struct, frozen=True, tag="complete"):
    """The last line: there is no other partition.  A stream may go on in another run of the topology."""

    partitions: int
    rows: int
    topology: str = ""


class Head(msgspec.Struct, frozen=True, tag="stream"):
    """The first line of a stream's index: which stream it is, and how much of it is acked and removed."""

    stream: str
    batches: int
    partitions: int


class MicroBatch(msgspec.Struct, frozen=True, tag="batch"):
    """A published micro-batch of a stream: its id in Spark, the run's folder, its partitions that have rows.

    Partitions are numbered over the whole stream.
    """

    number: int
    run: str
    partitions: tuple[Partition, ...]


Line = Partition | Complete | Head | MicroBatch
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class PresentFile:
    """The file that a path names at present.  It is held open, else its successor could get the same inode.

    ``number`` counts the files that have been there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = -1
        self.number = 0

    def look(self) -> bool:
        """Whether there is one; opens it, if it is new."""
        try:
            status = self._path.stat()
            if self._held < 0 or not os.path.samestat(status, os.fstat(self._held)):
                new = os.open(self._path, os.O_RDONLY)
                self._close()
                self._held = new
                self.number += 1
        except FileNotFoundError:
            return False
        return True

    def read(self, offset: int) -> bytes:
        """What it has from there on."""
        return os.pread(self._held, max(0, os.fstat(self._held).st_size - offset), offset)

    def _close(self) -> None:
        if self._held >= 0:
            os.close(self._held)
            self._held = -1

    def __del__(self) -> None:
        self._close()


class IndexReader:
    """Follows an index that grows."""

    def __init__(self, folder: Path) -> None:
        """``folder`` need not be there yet."""
        self._present = PresentFile(folder / INDEX)
        self._reset()

    def _reset(self) -> None:
        self._file = self._present.number
        self._offset = 0
        self.partitions: dict[int, Partition] = {}
        self.complete: Complete | None = None
        self.head: Head | None = None
        self.batches: dict[int, MicroBatch] = {}

    def poll(self) -> bool:
        """Reads what is new; True if there was anything.  An index that was begun anew is new: nothing former stays."""
        if not self._present.look():
            return False
        if anew := self._file != self._present.number:
            self._reset()
        text = self._present.read(self._offset)
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            self._take(_decoder.decode(line))
        return anew or bool(whole)

    def _take(self, line: Line) -> None:
        match line:
            case Complete():
                self.complete = line
            case Head():
                self.head = line
            case MicroBatch():
                self.batches[line.number] = line
                self.partitions.update((partition.number, partition) for partition in line.partitions)
            case Partition():
                self.partitions[line.number] = line


class IndexWriter:
    """The driver's end.  What a former driver wrote is read first; a line that it did not finish is cut off."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / INDEX
        self._file = self._path.open("ab", buffering=0)
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

    def complete(self, topology: str = "") -> Complete:
        """Says that nothing more will come in this topology, by its id."""
        partitions = self.known.partitions.values()
        line = Complete(len(partitions), sum(each.rows for each in partitions), topology)
        self._append(line)
        return line

    def restart(self) -> None:
        """Begins anew; readers notice."""
        self._replace([])
        assert not self.known.partitions

    def _append(self, line: Line) -> None:
        _write(self._file, [line])
        self.known.poll()

    def _replace(self, lines: Iterable[Line]) -> None:
        new = self._path.with_suffix(".new")
        with new.open("wb", buffering=0) as file:
            _write(file, lines)
        self._file.close()
        new.replace(self._path)
        self._file = self._path.open("ab", buffering=0)
        self.known.poll()

    def close(self) -> None:
        """Closes the file; the index stays."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()


class StreamIndexWriter(IndexWriter):
    """The index of a stream: micro-batches in their order.  Those that are acked are not kept."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        if self.known.head is None:
            self._append(Head(secrets.token_hex(8), 0, 0))

    @property
    def head(self) -> Head:
        """The first line."""
        assert self.known.head is not None
        return self.known.head

    @property
    def next_batch(self) -> int:
        """The number of the micro-batch that is to come."""
        return self.head.batches + len(self.known.batches)

    def publish_batch(self, run: str, partitions: Iterable[Partition]) -> MicroBatch:
        """Appends the next micro-batch, as a whole or not at all."""
        batch = _numbered(self.next_batch, run, partitions, self.head.partitions + len(self.known.partitions))
        self._append(batch)
        return batch

    def replace_all(self, run: str, partitions: Iterable[Partition]) -> None:
        """Begins another stream, of this one micro-batch; readers notice."""
        self._replace([Head(secrets.token_hex(8), 0, 0), _numbered(0, run, partitions, 0)])

    def remove_first(self) -> MicroBatch:
        """Forgets the oldest micro-batch; readers notice."""
        oldest, *others = self.known.batches.values()
        head = Head(self.head.stream, oldest.number + 1, self.head.partitions + len(oldest.partitions))
        end = [] if self.known.complete is None else [self.known.complete]
        self._replace([head, *others, *end])
        return oldest


def _numbered(batch: int, run: str, partitions: Iterable[Partition], first: int) -> MicroBatch:
    with_rows = [partition for partition in partitions if partition.files]
    numbered = (msgspec.structs.replace(partition, number=number) for number, partition in enumerate(with_rows, first))
    return MicroBatch(batch, run, tuple(numbered))


def _write(file: FileIO, lines: Iterable[Line]) -> None:
    """``file`` has no buffer: what could not be written would come again, as an error, when it is closed."""
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    try:
        while text:
            text = text[file.write(text) :]
        os.fsync(file.fileno())
    except OSError as error:
        raise UserError(
            f"the index {file.name} cannot be written: {error}; nothing more is published, so the topology ends",
            hint="Make room there (driver_disk= on Kubernetes), or let another folder be used.",
        ) from error


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
