"""Of one partition: which offsets are open, and below which one everything is done.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ardea.errors import UserError

Offsets = NDArray[np.int64]
OFFSET_BITS, PLACE_BITS = 47, 16


class PartitionId(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Numbers(dict[PartitionId, int]):
    """0, 1, ... of partitions, in the order in which they are asked for: in the ids of rows of batches."""

    def __missing__(self, place: PartitionId) -> int:
        self[place] = number = len(self)
        return number

    def of(self, row: int) -> tuple[PartitionId, int]:
        """The partition and the offset of a row's id."""
        ((number, (offset,)),) = offsets_by_place(np.array([row], dtype=np.int64)).items()
        return next(place for place, known in self.items() if known == number), offset


class Marks:
    """Records are read in ascending order and done in any; there may be gaps between their offsets.

    Attributes:
        position: the offset behind all that was read.
        committed: the offset that was last committed, None: none, or it has to be committed again.
        end: where a bounded partition ends, exclusively; None: nowhere.
    """

    __slots__ = ("_fresh", "_open", "committed", "end", "position")

    def __init__(self, begin: int, *, committed: int | None = None, end: int | None = None) -> None:
        self.position = begin
        self.committed = committed
        self.end = end
        self._open = np.empty(0, dtype=np.int64)  # ascending, because records are read so
        self._fresh: list[Offsets] = []  # behind them, read since somebody asked

    def read(self, offsets: Sequence[int] | Offsets) -> None:
        """These were read and are not done, in ascending order, all at or above ``position``."""
        if len(offsets):
            self._fresh.append(np.asarray(offsets, dtype=np.int64))
            self.position = int(offsets[-1]) + 1

    def passed(self, position: int) -> None:
        """Nothing is there below ``position`` that was not read, or need be; what is behind the end was not read."""
        self.position = max(self.position, position if self.end is None else min(position, self.end))

    def done(self, offsets: Sequence[int] | Offsets) -> None:
        """These need not be read again; those that are not open are ignored."""
        if len(offsets):
            opened = self._opened()
            self._open = opened[~np.isin(opened, offsets)]

    @property
    def open(self) -> int:
        """How many were read and are not done."""
        return len(self._opened())

    @property
    def low(self) -> int:
        """Everything below is done."""
        opened = self._opened()
        return int(opened[0]) if len(opened) else self.position

    def _opened(self) -> Offsets:
        if self._fresh:
            self._open = np.concatenate((self._open, *self._fresh))
            self._fresh.clear()
        return self._open

    @property
    def exhausted(self) -> bool:
        """Whether the end was reached."""
        return self.end is not None and self.position >= self.end


def row_ids(number: int, offsets: Offsets) -> Offsets:
    """The ids of rows of a batch, from the number that their partition has in its task, and their offsets, ascending.

    Numbers, so that acks come as arrays.

    Raises:
        UserError: the task has read too many partitions, or an offset is too large.
    """
    if number >> PLACE_BITS or int(offsets[-1]) >> OFFSET_BITS:
        raise UserError(
            f"a spout with translate_batch= reads {1 << PLACE_BITS:,} partitions a task, up to offset 2**{OFFSET_BITS}",
            hint="Give it more tasks, or translate=.",
        )
    ids: Offsets = offsets | number << OFFSET_BITS
    return ids


def offsets_by_place(ids: Offsets) -> dict[int, Offsets]:
    """Of ids that :func:`row_ids` made, the offsets, ascending, of each number."""
    ordered = np.sort(ids)
    heads = np.flatnonzero(np.diff(ordered >> OFFSET_BITS)) + 1
    parts = np.split(ordered, heads) if len(ordered) else []
    return {int(part[0]) >> OFFSET_BITS: part & (1 << OFFSET_BITS) - 1 for part in parts}


def to_commit(marks: Mapping[PartitionId, Marks]) -> dict[PartitionId, int]:
    """What has changed since it was committed; counts as committed from now on."""
    changed: dict[PartitionId, int] = {}
    for place, mark in marks.items():
        if (low := mark.low) != mark.committed:
            mark.committed = changed[place] = low
    return changed
