"""Effectively once: how far partitions are is part of snapshots, and the driver hears of those that count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ardea.snapshots.taken import Taken
from ardea.spark.index import Partition
from ardea.spark.progress import BATCH_BITS, ROW_BITS, JobProgress, Mark


class KeptProgress(JobProgress):
    """Nothing is acked: a partition's mark is its first batch that the last snapshot which counts does not cover."""

    def __init__(
        self,
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
        *,
        items: Iterable[Sequence[Any]],
        owns: Callable[[int], bool],
    ) -> None:
        """``items``: (partition, next batch, source) of all tasks; ``owns``: which partitions are this one's."""
        super().__init__(folder, clock)
        self._read = {number: Mark(batch, source) for number, batch, source in items if owns(number)}
        self._taken = Taken[int, Mark]()

    def begin(self, partition: Partition) -> Mark:
        """Where the snapshot has it, whatever is written."""
        left = self._read.get(partition.number, Mark())
        self._follow(partition, left)
        if left.batch:
            self._write(partition.number)  # the former life may not have heard that the snapshot counts
        self._read[partition.number] = Mark(left.batch, partition.source)
        return left

    def emitted(self, ids: range) -> None:
        """The next snapshot covers this batch."""
        key = ids[0] >> ROW_BITS
        number = key >> BATCH_BITS
        self._read[number] = Mark((key & (1 << BATCH_BITS) - 1) + 1, self._read[number].source)

    def acked(self, tup_id: int, rows: int = 1) -> None:
        """Nobody waits for that."""

    def forget(self, partition: int) -> None:
        """It is removed everywhere."""
        super().forget(partition)
        self._read.pop(partition, None)

    def take(self, number: int) -> list[list[Any]]:
        """The items of a snapshot."""
        self._taken.take(number, dict(self._read))
        return [[partition, *mark] for partition, mark in sorted(self._read.items())]

    def counts(self, number: int) -> list[int]:
        """That snapshot counts; returns the partitions that are read to their end."""
        taken = self._taken.counts(number).items()
        return [each for each, mark in taken if each in self._marks and self._reach(each, mark.batch)]
