"""What a spout's watermark hears of the partitions of its topics, and the time that a record carries itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ardea.kafka.marks import PartitionId
from ardea.watermarks import SourceTime, stamps_of


def record_time(message: Any) -> float | None:
    """When a record was made, or was written, whichever its topic keeps: seconds since 1970; None: it does not say.

    ``message`` is a ``confluent_kafka.Message``: ``translate=lambda m: (m.value(), record_time(m))``.
    """
    kind, milliseconds = message.timestamp()
    return milliseconds / 1000 if kind else None  # 0: TIMESTAMP_NOT_AVAILABLE


class PartitionTimes:
    """Of one task; nothing where its rows have no stamps.

    A partition may be idle only from when everything in it was read: what a broker has and does not give is to come.
    """

    def __init__(self, time: SourceTime | None, place: int) -> None:
        """``place``: of the field with stamps."""
        self._time, self._place = time, place

    def known(self) -> None:
        """Which partitions there are has been found out."""
        if self._time is not None:
            self._time.known()

    def begins(self, place: PartitionId) -> None:
        """It is read from now on."""
        if self._time is not None:
            self._time.add(str(place))
            self._time.unreadable(str(place))

    def rows(self, place: PartitionId, rows: Any) -> None:
        """These are emitted; None among them: a record that was left out."""
        if self._time is None:
            return
        if isinstance(rows, list):
            rows = [row for row in rows if row is not None]
        self._time.emits(str(place), stamps_of(rows, self._place))
        self._time.unreadable(str(place))

    def silent(self, places: Iterable[PartitionId]) -> None:
        """Whether there is more in them is not known at present."""
        if self._time is not None:
            for place in places:
                self._time.unreadable(str(place))

    def at_end(self, place: PartitionId) -> None:
        """Everything in it was read."""
        if self._time is not None:
            self._time.readable(str(place))

    def left(self, place: PartitionId) -> None:
        """It was read to where it ends, is another task's, or is gone."""
        if self._time is not None:
            self._time.remove(str(place))
