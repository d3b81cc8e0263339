"""How far topics reach beyond the positions of a stream: whether there is something to read, or nothing any more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ardea.errors import FailedException
from ardea.kafka.marks import PartitionId

NEWS = 0.2
"""Seconds between two looks."""


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
        self.ready = self.over = False

    @property
    def due(self) -> bool:
        """Whether the last look was long ago."""
        return self._clock() >= self._next

    def look(self, positions: Mapping[str, Any]) -> None:
        """Sets ``ready`` and ``over``.

        ``positions``: [first offset, offset after the last record that was read], by the partition's name.
        """
        self._next = self._clock() + NEWS
        self.ready = self.over = False
        try:
            names = self._partitions()
        except FailedException:
            return
        if self._latest and self._ends is None and names:
            ends = {}
            for place in map(place_of, names):
                if (end := self._end_of(place)) is None:
                    return  # nor would the others be answered, each after a while
                ends[place] = end
            self._ends = ends
        if self._ends is not None:
            names = self._unfinished(names, self._ends, positions)
        self.ready = any(name not in positions or self._has_more(name, positions[name][1]) for name in names)

    def _unfinished(
        self, names: Sequence[str], ends: Mapping[PartitionId, int], positions: Mapping[str, Any]
    ) -> list[str]:
        bounded = {name: ends[place_of(name)] for name in names if place_of(name) in ends}
        unfinished = [
            name
            for name, end in bounded.items()
            if name not in positions or positions[name][1] < end or self._is_cut(name, positions[name][1])
        ]
        self.over = len(bounded) == len(ends) > 0 and not unfinished
        return unfinished

    def _has_more(self, name: str, position: int) -> bool:
        """Also if it ends before its position: a batch finds out that records are gone."""
        return self._end_of(place_of(name)) not in (position, None)

    def _is_cut(self, name: str, position: int) -> bool:
        """Whether it ends before its position, as a new topic of the same name does; True if nobody answers."""
        end = self._end_of(place_of(name))
        return end is None or end < position


def place_of(partition: str) -> PartitionId:
    """Of ``TOPIC/NUMBER``."""
    topic, _, number = partition.rpartition("/")
    return PartitionId(topic, int(number))
