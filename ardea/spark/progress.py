"""How far a partition is acked, kept over the lives of the task that reads it."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ardea.errors import UserError
from ardea.spark.index import Partition

BATCH_BITS, ROW_BITS = 32, 20
MAX_ROWS = 1 << ROW_BITS
_STREAM = "stream"
_WRITE_EVERY = 0.1
"""Seconds between two writes of a mark that goes on: after a kill, what was acked meanwhile comes again."""
_BATCHES = (1 << BATCH_BITS) - 1


def ids_of(partition: int, batch: int, rows: int) -> range:
    """The ``tup_id`` of each row of a batch: its position (partition, batch, row) in one number."""
    first = ((partition << BATCH_BITS) | batch) << ROW_BITS
    return range(first, first + rows)


class Mark(NamedTuple):
    """The first batch that is not completely acked, and the ``source`` of the partition, where that was known."""

    batch: int = 0
    source: str = ""


class JobProgress:
    """Counts acks by batch; the first batch that is not completely acked is written to ``folder/PARTITION``.

    Only the task that reads the partition writes, and what is lost of it is only processed once more: no fsync, and
    ten times a second is enough (:meth:`keep`).  That a partition is acked to its end is written at once: others wait
    for that.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._open: dict[int, int] = {}  # partition and batch -> rows without ack
        self._done: dict[int, set[int]] = {}  # partition -> acked batches above its mark
        self._marks: dict[int, int] = {}
        self._sources: dict[int, str] = {}
        self._ends: dict[int, int] = {}  # partition -> its batches
        self._written: dict[int, float] = {}  # partition -> when its mark was
        self._behind: set[int] = set()  # partitions whose mark is written later

    def begin(self, partition: Partition) -> Mark:
        """Where it was left, maybe as it came of another run; from now on its mark names this one."""
        left = read_mark(self._folder, partition.number)
        self._follow(partition, left)
        return left

    def _follow(self, partition: Partition, left: Mark) -> None:
        number = partition.number
        self._marks.setdefault(number, left.batch)
        self._done.setdefault(number, set())
        self._sources[number] = partition.source
        self._ends[number] = partition.batches
        if partition.source and not left.source:
            self._write(number)  # some of its rows may have been seen before the first batch is acked

    def stream(self) -> str | None:
        """The stream that its marks are of, as :meth:`of_stream` was told; None: nobody has said."""
        try:
            return (self._folder / _STREAM).read_text()
        except FileNotFoundError:
            return None

    def of_stream(self, stream: str) -> None:
        """Its marks, which go when they are not needed any more, are of this stream."""
        with self._kept("the name of the stream"):
            _replace(self._folder, _STREAM, stream)

    def mark(self, partition: int) -> int:
        """Of one that is begun: the first batch that is not completely acked."""
        return self._marks[partition]

    def emitted(self, ids: range) -> None:
        """These rows, a batch, are about to leave."""
        self._open[ids[0] >> ROW_BITS] = len(ids)

    def acked(self, tup_id: int, rows: int = 1) -> int | None:
        """So many rows of that row's batch are done with; returns the partition, if they were its last."""
        key = tup_id >> ROW_BITS
        if key not in self._open:
            return None  # its partition is forgotten: a former life had it acked
        left = self._open[key] - rows
        if left:
            self._open[key] = left
            return None
        del self._open[key]
        partition = key >> BATCH_BITS
        self._advance(partition, key & _BATCHES)
        return partition

    def leave(self, partition: int) -> None:
        """Another task goes on at its mark."""
        self.keep(at_once=True)
        self._drop(partition)

    def forget(self, partition: int) -> None:
        """It has been acked, and removed from the index."""
        self._drop(partition)
        (self._folder / str(partition)).unlink(missing_ok=True)

    def _drop(self, partition: int) -> None:
        for known in (self._marks, self._done, self._sources, self._ends, self._written):
            known.pop(partition, None)
        self._behind.discard(partition)
        self._open = {key: rows for key, rows in self._open.items() if key >> BATCH_BITS != partition}

    def _advance(self, partition: int, batch: int) -> None:
        done, mark = self._done[partition], self._marks[partition]
        done.add(batch)
        while mark in done:
            done.remove(mark)
            mark += 1
        self._reach(partition, mark)

    def _reach(self, partition: int, mark: int) -> bool:
        """Whether that is its end."""
        ended = mark >= self._ends[partition]
        if mark != self._marks[partition]:
            self._marks[partition] = mark
            self._behind.add(partition)
            self._keep(partition, at_once=ended)
        return ended

    def keep(self, *, at_once: bool = False) -> None:
        """Writes marks that have gone on, if it is time, or ``at_once``: at the end of a life."""
        for partition in [*self._behind]:
            self._keep(partition, at_once=at_once)

    def _keep(self, partition: int, *, at_once: bool) -> None:
        now = self._clock()
        if at_once or now >= self._written.get(partition, -math.inf) + _WRITE_EVERY:
            self._behind.discard(partition)
            self._written[partition] = now
            self._write(partition)

    def _write(self, partition: int) -> None:
        with self._kept(f"how much of partition {partition} is acked"):
            write_mark(self._folder, partition, self._marks[partition], self._sources[partition])

    @contextmanager
    def _kept(self, what: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            pass  # the driver has removed the folder: the topology ends
        except OSError as error:
            raise UserError(
                f"{what} cannot be kept in {self._folder}: {error}; the topology ends",
                hint="Make room there (disk= of the spout on Kubernetes).",
            ) from error


def read_mark(folder: Path, partition: int) -> Mark:
    """As far as it is known there."""
    try:
        batch, _, source = (folder / str(partition)).read_text().partition(" ")
    except FileNotFoundError:
        return Mark()
    return Mark(int(batch), source)


def write_mark(folder: Path, partition: int, batch: int, source: str = "") -> None:
    """Keeps it there, as a whole or not at all; the tasks of a Trident spout write at the same time."""
    _replace(folder, str(partition), f"{batch} {source}".rstrip())


def _replace(folder: Path, name: str, text: str) -> None:
    new = folder / f".{name}-{secrets.token_hex(4)}"
    new.write_text(text)
    new.replace(folder / name)
