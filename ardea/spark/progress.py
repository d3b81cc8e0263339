"""How far a partition is acked, kept over the lives of the task that reads it."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path

BATCH_BITS, ROW_BITS = 32, 20
MAX_ROWS = 1 << ROW_BITS
_BATCHES = (1 << BATCH_BITS) - 1


def ids_of(partition: int, batch: int, rows: int) -> range:
    """The ``tup_id`` of each row of a batch: its position (partition, batch, row) in one number."""
    first = ((partition << BATCH_BITS) | batch) << ROW_BITS
    return range(first, first + rows)


class Progress:
    """Counts acks by batch; the first batch that is not completely acked is written to ``folder/PARTITION``.

    Only the task that reads the partition writes, and what is lost of it is only processed once more: no fsync.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, int] = {}  # partition and batch -> rows without ack
        self._done: dict[int, set[int]] = {}  # partition -> acked batches above its mark
        self._marks: dict[int, int] = {}

    def mark(self, partition: int) -> int:
        """The batch to begin with."""
        if partition not in self._marks:
            self._marks[partition] = read_mark(self._folder, partition)
            self._done[partition] = set()
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

    def forget(self, partition: int) -> None:
        """It has been acked, and removed from the index."""
        self._marks.pop(partition, None)
        self._done.pop(partition, None)
        self._open = {key: rows for key, rows in self._open.items() if key >> BATCH_BITS != partition}
        (self._folder / str(partition)).unlink(missing_ok=True)

    def _advance(self, partition: int, batch: int) -> None:
        done, mark = self._done[partition], self._marks[partition]
        done.add(batch)
        while mark in done:
            done.remove(mark)
            mark += 1
        if mark != self._marks[partition]:
            self._marks[partition] = mark
            with contextlib.suppress(FileNotFoundError):  # the driver has removed the folder: the topology ends
                write_mark(self._folder, partition, mark)


def read_mark(folder: Path, partition: int) -> int:
    """The first batch of the partition that is not completely acked, as far as that is known there."""
    try:
        return int((folder / str(partition)).read_text())
    except FileNotFoundError:
        return 0


def write_mark(folder: Path, partition: int, mark: int) -> None:
    """Keeps it there, as a whole or not at all; the tasks of a Trident spout write at the same time."""
    new = folder / f".{partition}-{secrets.token_hex(4)}"
    new.write_text(str(mark))
    new.replace(folder / str(partition))
