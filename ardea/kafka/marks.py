"""Of one partition: which offsets are open, and below which one everything is done.  Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ardea.errors import UserError

Offsets = NDArray[np.int64]
OFFSET_BITS, PLACE_BITS = 47, 16


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class _Stretch:
    """What was read at once; ``left`` of it is not done."""

    __slots__ = ("_done", "first", "last", "left", "offsets")

    def __init__(self, offsets: Offsets) -> None:
        self.offsets = offsets
        self.first, self.last = int(offsets[0]), int(offsets[-1])
        self._done = np.zeros(len(offsets), dtype=np.bool_)
        self.left = len(offsets)

    def done(self, offsets: Offsets) -> None:
        """Offsets from the first to the last of the stretch."""
        places = np.searchsorted(self.offsets, offsets)
        self._done[places[self.offsets[places] == offsets]] = True
        self.left = len(self.offsets) - int(np.count_nonzero(self._done))

    @property
    def low(self) -> int:
        """The first that is not done."""
        return int(self.offsets[int(self._done.argmin())])


class Marks:
    """Records are read in ascending order and done in any; there may be gaps between their offsets.

    Attributes:
        position: the offset behind all that was read.
        committed: the offset that was last committed, None: none, or it has to be committed again.
        end: where a bounded partition ends, exclusively; None: nowhere.
    """

    __slots__ = ("_stretches", "committed", "end", "position")

    def __init__(self, begin: int, *, committed: int | None = None, end: int | None = None) -> None:
        self.position = begin
        self.committed = committed
        self.end = end
        self._stretches: deque[_Stretch] = deque()  # in ascending order, because they are read so; none is all done

    def read(self, offsets: Sequence[int] | Offsets) -> None:
        """These were read, in ascending order, all at or above ``position``."""
        stretch = _Stretch(np.asarray(offsets, dtype=np.int64))
        self._stretches.append(stretch)
        self.position = stretch.last + 1

    def passed(self, position: int) -> None:
        """Nothing is there below ``position`` that was not read."""
        self.position = max(self.position, position)

    def done(self, offsets: Sequence[int] | Offsets) -> None:
        """These need not be read again; those that are not open are ignored."""
        if not len(offsets):
            return
        ordered = np.sort(np.asarray(offsets, dtype=np.int64))
        first, last = int(ordered[0]), int(ordered[-1])
        for stretch in self._stretches:
            if stretch.first > last:
                break
            if stretch.last >= first:
                begin, end = np.searchsorted(ordered, (stretch.first, stretch.last + 1))
                stretch.done(ordered[begin:end])
        if not all(stretch.left for stretch in self._stretches):
            self._stretches = deque(stretch for stretch in self._stretches if stretch.left)

    @property
    def open(self) -> int:
        """How many were read and are not done."""
        return sum(stretch.left for stretch in self._stretches)

    @property
    def low(self) -> int:
        """Everything below is done."""
        return self._stretches[0].low if self._stretches else self.position

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


def offsets_of(ids: Offsets, number: int) -> Offsets:
    """The offsets of those ids that :func:`row_ids` made with that number."""
    offsets: Offsets = ids[ids >> OFFSET_BITS == number] & (1 << OFFSET_BITS) - 1
    return offsets


def to_commit(marks: Mapping[Place, Marks]) -> dict[Place, int]:
    """What has changed since it was committed; counts as committed from now on."""
    changed: dict[Place, int] = {}
    for place, mark in marks.items():
        if (low := mark.low) != mark.committed:
            mark.committed = changed[place] = low
    return changed
