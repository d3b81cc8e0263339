"""Effectively once: where a task's partitions are, in snapshots.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ardea.kafka.beginning import Stored
from ardea.kafka.marks import Marks, Offsets, PartitionId
from ardea.kafka.sharing import owner
from ardea.snapshots.taken import Taken


class KeptMarks(Marks):
    """Of a partition whose position is in snapshots: done is what lies before that in the last one that counts."""

    __slots__ = ("_kept",)

    def __init__(self, begin: int, *, committed: int | None = None, end: int | None = None) -> None:
        super().__init__(begin, committed=committed, end=end)
        self._kept = begin

    def read(self, offsets: Sequence[int] | Offsets) -> None:
        """They were emitted, and nobody acks them."""
        if len(offsets):
            self.passed(int(offsets[-1]) + 1)

    def keep(self, offset: int) -> None:
        """A snapshot counts that has this position."""
        self._kept = max(self._kept, offset)

    @property
    def low(self) -> int:
        """Everything below never comes again."""
        return self._kept


class Positions:
    """Of one task.

    ``restored``: where its partitions were in the snapshot that it began from, until they are read.  ``ends``: where
    those that are bounded end, as it was found when they were begun with.  ``complete``: of a bounded spout, that
    these are all.
    """

    def __init__(self, items: Iterable[Sequence[Any]], index: int, tasks: int, *, complete: bool = False) -> None:
        """``items``: (topic, partition, offset), and the end of a bounded one, of all tasks of the component."""
        places = {PartitionId(*item[:2]): item[2:] for item in items}
        mine = {place: item for place, item in places.items() if owner(place, tasks) == index}
        self.restored = {place: item[0] for place, item in mine.items()}
        self.ends = {place: item[1] for place, item in mine.items() if len(item) > 1}
        self.complete = complete
        self._taken = Taken[PartitionId, int]()
        self._left: dict[PartitionId, Marks] = {}  # while they are away

    def take(self, number: int, marks: Mapping[PartitionId, Marks]) -> list[list[Any]]:
        """The items of a snapshot; partitions that have not been found again stand where they were."""
        taken = self.restored | {place: mark.position for place, mark in marks.items()}
        self._taken.take(number, taken)
        found = {place: mark.end for place, mark in marks.items()}
        ends = {place: [end] for place, end in (self.ends | found).items() if end is not None}
        return [[*place, offset, *ends.get(place, ())] for place, offset in sorted(taken.items())]

    def counts(self, number: int, marks: Mapping[PartitionId, Marks]) -> None:
        """That snapshot counts; those before it never will."""
        for place, offset in self._taken.counts(number).items():
            if isinstance(mark := marks.get(place), KeptMarks):
                mark.keep(offset)

    def unread(self) -> dict[PartitionId, KeptMarks]:
        """Marks of bounded partitions that the snapshot had not read to their ends."""
        begins = {place: (self.restored[place], end) for place, end in self.ends.items()}
        return {place: KeptMarks(at, committed=at, end=end) for place, (at, end) in begins.items() if at < end}

    def leave(self, place: PartitionId, marks: Marks) -> None:
        """It is not there any more."""
        self.restored.pop(place, None)
        self.ends.pop(place, None)
        self._left[place] = marks

    def back(self, place: PartitionId, stored: Stored | None) -> Marks | None:
        """As it was left; None: it was not, or it is another one of that name.

        Kafka deletes what a group has ``stored`` for a partition together with it.
        """
        marks = self._left.pop(place, None)
        if marks is None or stored is None:
            return None
        marks.committed = stored.offset
        return marks
