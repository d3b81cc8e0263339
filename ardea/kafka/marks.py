"""Of one partition: which offsets are open, and below which one everything is done.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Marks:
    """Records are read in ascending order and done in any; there may be gaps between their offsets.

    Attributes:
        position: the offset behind all that was read.
        committed: the offset that was last committed, None: none, or it has to be committed again.
        end: where a bounded partition ends, exclusively; None: nowhere.
    """

    __slots__ = ("_open", "committed", "end", "position")

    def __init__(self, begin: int, *, committed: int | None = None, end: int | None = None) -> None:
        self.position = begin
        self.committed = committed
        self.end = end
        self._open: dict[int, None] = {}  # in ascending order, because they are read so

    def read(self, offsets: Sequence[int]) -> None:
        """These were read, in ascending order, all at or above ``position``."""
        self._open.update(dict.fromkeys(offsets))
        self.position = offsets[-1] + 1

    def passed(self, position: int) -> None:
        """Nothing is there below ``position`` that was not read."""
        self.position = max(self.position, position)

    def done(self, offsets: Iterable[int]) -> None:
        """These need not be read again; those that are not open are ignored."""
        pop = self._open.pop
        for offset in offsets:
            pop(offset, None)

    @property
    def open(self) -> int:
        """How many were read and are not done."""
        return len(self._open)

    @property
    def low(self) -> int:
        """Everything below is done."""
        return next(iter(self._open), self.position)

    @property
    def exhausted(self) -> bool:
        """Whether the end was reached."""
        return self.end is not None and self.position >= self.end


def to_commit(marks: Mapping[Place, Marks]) -> dict[Place, int]:
    """What has changed since it was committed; counts as committed from now on."""
    changed: dict[Place, int] = {}
    for place, mark in marks.items():
        if (low := mark.low) != mark.committed:
            mark.committed = changed[place] = low
    return changed
