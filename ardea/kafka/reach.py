"""How far topics reach beyond the positions of a stream: whether there is something to read, or nothing any more."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ardea.errors import FailedException
from ardea.kafka.marks import PartitionId

NEWS = 0.2
"""Seconds from a look to the next one."""


class Reach:
    """Of the partitions of one stream.

    Attributes:
        ready: whether a partition has records after its position, or no position yet.
        over: whether everything up to the end has been read.
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[str]],
        end_of: Callable[[PartitionId], int | None],
        end: Mapping[PartitionId, int] | Literal["latest"] | None,
        clock: Callable[[], float],
    ) -> None:
        """Where to look.

        Args:
            partitions: gives ``TOPIC/NUMBER`` of each; FailedException: no broker answers.
            end_of: gives the offset after a partition's last record; None: no broker answers.
            end: where the stream is finished: offsets, or after what is there at the first look; None: never.
            clock: seconds, steady.
        """
        self._partitions, self._end_of, self._clock = partitions, end_of, clock
        self._latest = end == "latest"
        self._ends = end if isinstance(end, Mapping) else None
        self._next = 0.0
        self._silent = False  # a partition was not answered in this look
        self._unanswered: dict[str, float] = {}  # when that was, by partition
        self.ready = self.over = False

    @property
    def due(self) -> bool:
        """Whether the last look was long ago."""
        return self._clock() >= self._next

    def look(self, positions: Mapping[str, Any]) -> None:
        """Sets ``ready`` and ``over``.

        ``positions``: [first offset, offset after the last record that was read], by the partition's name.
        """
        self.ready = self.over = self._silent = False
        try:
            self._look(positions)
        finally:
            self._next = self._clock() + NEWS  # one in which nobody answers takes seconds itself

    def _look(self, positions: Mapping[str, Any]) -> None:
        try:
            # Those that were not answered are asked after all others, and in turn: nobody waits for them.
            names = sorted(self._partitions(), key=lambda name: self._unanswered.get(name, 0.0))
        except FailedException:
            return
        if self._latest and self._ends is None and names:
            ends = {}
            for name in names:
                if (end := self._asked(name)) is None:
                    return
                ends[place_of(name)] = end
            self._ends = ends
        self._find(names, positions)

    def _find(self, names: Sequence[str], positions: Mapping[str, Any]) -> None:
        ends = self._ends
        if ends is None:
            bounded: dict[str, float] = dict.fromkeys(names, math.inf)
        else:
            bounded = {name: ends[place_of(name)] for name in names if place_of(name) in ends}
        unfinished = []
        for name, bound in bounded.items():
            position = positions[name][1] if name in positions else None
            end = None if position is None else self._asked(name)
            # What ends before its position is another topic of that name: a batch finds out that records are gone.
            if position is None or (end is not None and (end < position or position < min(end, bound))):
                self.ready = True
                return
            if end is None or position < bound:
                unfinished.append(name)
        self.over = ends is not None and len(bounded) == len(ends) > 0 and not unfinished

    def _asked(self, name: str) -> int | None:
        """Its end; None: nobody answers, or nobody did in this look: each would take its while."""
        if self._silent:
            return None
        end = self._end_of(place_of(name))
        self._silent = end is None
        self._unanswered.pop(name, None)
        if end is None:
            self._unanswered[name] = self._clock()
        return end


def place_of(partition: str) -> PartitionId:
    """Of ``TOPIC/NUMBER``."""
    topic, _, number = partition.rpartition("/")
    return PartitionId(topic, int(number))
