"""How far a partition is acked, kept over the lives of the task that reads it."""

from __future__ import annotations

import contextlib
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
            try:
                self._marks[partition] = int((self._folder / str(partition)).read_text())
            except FileNotFoundError:
                self._marks[partition] = 0
            self._done[partition] = set()
        return self._marks[partition]

    def emitted(self, ids: range) -> None:
        """These rows, a batch, are about to leave."""
        self._open[ids[0] >> ROW_BITS] = len(ids)

    def acked(self, tup_id: int) -> None:
        """One row is done with."""
        key = tup_id >> ROW_BITS
        left = self._open[key] - 1
        if left:
            self._open[key] = left
        else:
            del self._open[key]
            self._advance(key >> BATCH_BITS, key & _BATCHES)

    def _advance(self, partition: int, batch: int) -> None:
        done, mark = self._done[partition], self._marks[partition]
        done.add(batch)
        while mark in done:
            done.remove(mark)
            mark += 1
        if mark != self._marks[partition]:
            self._marks[partition] = mark
            new = self._folder / f".{partition}"
            with contextlib.suppress(FileNotFoundError):  # the driver has removed the folder: the topology ends
                new.write_text(str(mark))
                new.replace(self._folder / str(partition))
