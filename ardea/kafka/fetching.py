"""Reading given stretches of partitions, ahead where that is possible."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ardea.kafka.client import Connection, kafka
from ardea.kafka.marks import PartitionId
from ardea.kafka.survey import PATIENCE, Span

ROUND = 0.05


class Deleted(Exception):  # noqa: N818 -- says what is, not that somebody erred
    """Offset ``wanted`` of ``place`` is not there; ``span`` is."""

    def __init__(self, place: PartitionId, wanted: int, span: Span) -> None:
        super().__init__(f"offset {wanted} of {place} is wanted, but there are only {span.first} to {span.end}")
        self.place, self.wanted, self.span = place, wanted, span


@dataclass(slots=True)
class _Ahead:
    """What was read of a partition and not taken.  ``position``: behind all that was read; ``paused``: enough is.

    ``wanted``: up to there it is never enough, as it is taken as a whole.
    """

    position: int
    read: deque[Any] = field(default_factory=deque)
    begin: int = 0  # behind what was taken
    wanted: int = 0
    paused: bool = False
    error: Any = None


class Fetcher:
    """Reads partitions, each from where it is asked to."""

    def __init__(self, connection: Connection, consumer: Any, most: int, clock: Callable[[], float]) -> None:
        """``most``: records of a partition that are taken at once."""
        self._connection, self._consumer, self._most, self._clock = connection, consumer, most, clock
        self._lib = kafka()
        self._ahead: dict[PartitionId, _Ahead] = {}
        self._ended: dict[PartitionId, int] = {}  # where partitions ended when that was last seen

    def span(self, place: PartitionId) -> Span:
        """Where the partition begins and ends now.

        Raises:
            KafkaException: no broker answers.
        """
        try:
            return self._asked_span(place)
        except self._lib.KafkaException as error:
            if error.args[0].code() != self._lib.KafkaError._UNKNOWN_PARTITION:
                raise
        self._consumer.list_topics(place.topic, timeout=PATIENCE)  # the client looks every five minutes by itself
        return self._asked_span(place)

    def new(self, place: PartitionId, begin: int, end: int | None, patience: float) -> tuple[list[Any], int]:
        """What is there from ``begin`` on, and the offset behind it; nothing, if nothing comes within ``patience``.

        Raises:
            Deleted: there is no such offset any more.
        """
        ahead = self._at(place, begin)

        def enough() -> bool:
            return bool(ahead.read) or self._at_end(place, ahead) or (end is not None and ahead.position >= end)

        if not ahead.read:
            self._poll(0.0)
        self._until(place, ahead, enough, patience)
        taken: list[Any] = []
        while ahead.read and len(taken) < self._most and (end is None or ahead.read[0].offset() < end):
            taken.append(ahead.read.popleft())
        ahead.begin = taken[-1].offset() + 1 if taken else begin
        if not ahead.read:
            ahead.begin = ahead.position  # past what is no record: markers of transactions, compacted ones
        elif end is not None and ahead.read[0].offset() >= end:
            ahead.begin = end
        self._resume(place, ahead)
        return taken, ahead.begin

    def again(self, place: PartitionId, begin: int, end: int, patience: float) -> list[Any] | None:
        """All records of a stretch; None if they do not come within ``patience``.

        Raises:
            Deleted: there is no such offset any more.
        """
        if begin == end:
            return []
        ahead = self._at(place, begin)
        ahead.wanted = end
        if not self._until(place, ahead, lambda: ahead.position >= end, patience):
            return None
        taken = []
        while ahead.read and ahead.read[0].offset() < end:
            taken.append(ahead.read.popleft())
        ahead.begin = end
        self._resume(place, ahead)
        return taken

    def _asked_span(self, place: PartitionId) -> Span:
        return Span(*self._consumer.get_watermark_offsets(self._lib.TopicPartition(*place), timeout=PATIENCE))

    def _at(self, place: PartitionId, begin: int) -> _Ahead:
        """Begins there, if that is not where it is."""
        ahead = self._ahead.get(place)
        if ahead is not None and ahead.begin == begin and ahead.error is None:
            return ahead
        if ahead is not None:
            point = self._lib.TopicPartition(*place)
            if ahead.paused:
                self._consumer.resume([point])  # or it would still be paused when it is assigned again
            self._consumer.incremental_unassign([point])
        self._consumer.incremental_assign([self._lib.TopicPartition(*place, begin)])
        self._ended.pop(place, None)
        ahead = self._ahead[place] = _Ahead(begin, begin=begin)
        return ahead

    def _until(self, place: PartitionId, ahead: _Ahead, condition: Callable[[], bool], patience: float) -> bool:
        deadline = self._clock() + patience
        while not condition():
            if ahead.error is not None:
                raise Deleted(place, ahead.begin, self.span(place))
            if self._clock() >= deadline:
                return False
            self._resume(place, ahead)
            self._poll(ROUND)
        return True

    def _at_end(self, place: PartitionId, ahead: _Ahead) -> bool:
        """Whether nothing is known to be behind what was read."""
        if self._ended.get(place, -1) < ahead.position:
            return False
        _, end = self._consumer.get_watermark_offsets(self._lib.TopicPartition(*place), cached=True)
        return bool(end <= ahead.position)

    def _poll(self, seconds: float) -> None:
        for message in self._consumer.consume(self._most, seconds):
            self._keep(message)
        self._connection.check()

    def _keep(self, message: Any) -> None:
        place = PartitionId(message.topic(), message.partition())
        ahead = self._ahead.get(place)
        error = message.error()
        if error is not None:
            self._news(place, ahead, message.offset(), error)
        elif ahead is not None and message.offset() >= ahead.position:
            ahead.read.append(message)
            ahead.position = message.offset() + 1
            if len(ahead.read) >= 2 * self._most and ahead.position >= ahead.wanted and not ahead.paused:
                ahead.paused = True
                self._consumer.pause([self._lib.TopicPartition(*place)])

    def _news(self, place: PartitionId, ahead: _Ahead | None, offset: int, error: Any) -> None:
        codes = self._lib.KafkaError
        if error.code() == codes._PARTITION_EOF:
            self._ended[place] = offset
            if ahead is not None:
                ahead.position = max(ahead.position, offset)
        elif error.code() == codes._AUTO_OFFSET_RESET:
            if ahead is not None:
                ahead.error = error
        else:
            self._connection.refuse(error)
            self._connection.quiet.say(logging.WARNING, (place, error.code()), f"{place}: {error.str()}")

    def _resume(self, place: PartitionId, ahead: _Ahead) -> None:
        if ahead.paused and (len(ahead.read) < self._most or ahead.position < ahead.wanted):
            ahead.paused = False
            self._consumer.resume([self._lib.TopicPartition(*place)])
