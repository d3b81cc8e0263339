"""Looking at topics: their partitions, what the group has committed, where records begin and end.

All of it waits for brokers, so that it runs in a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from typing import Any, NamedTuple

from ardea.kafka.beginning import Stored
from ardea.kafka.client import kafka
from ardea.kafka.marks import PartitionId
from ardea.kafka.sharing import Topics, missing, wanted

PATIENCE = 5.0
"""Seconds that a broker may take for each answer."""


class Span(NamedTuple):
    """The offset of a partition's first record, and the one behind its last that readers can see."""

    first: int
    end: int


class Survey(NamedTuple):
    """What was found.  ``spans`` and ``moments`` have the partitions that were asked for."""

    places: tuple[PartitionId, ...]
    missing: tuple[str, ...]
    stored: dict[PartitionId, Stored]
    spans: dict[PartitionId, Span]
    moments: dict[datetime, dict[PartitionId, int]]


class Surveyor:
    """Surveys in the background, one survey at a time."""

    def __init__(self, consumer: Any, topics: Topics) -> None:
        self._consumer, self._topics = consumer, topics
        self._point = kafka().TopicPartition
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="kafka-survey")
        self._running: Future[Survey] | None = None

    def ask(
        self, choose: Callable[[Sequence[PartitionId]], Sequence[PartitionId]], moments: Sequence[datetime] = ()
    ) -> None:
        """Begins a survey, unless one is running; ``choose`` says of which partitions spans and moments are needed."""
        if self._running is None:
            self._running = self._pool.submit(self.survey, choose, moments)

    def forget(self) -> None:
        """What runs was asked for by somebody else, and answers nobody."""
        self._running = None

    def answer(self) -> Survey | None:
        """The survey that is complete, once.

        Raises:
            KafkaException: brokers did not answer, or refused.
        """
        if self._running is None or not self._running.done():
            return None
        done, self._running = self._running, None
        return done.result()

    def survey(
        self, choose: Callable[[Sequence[PartitionId]], Sequence[PartitionId]], moments: Sequence[datetime] = ()
    ) -> Survey:
        """Looks, in this thread.

        Raises:
            KafkaException: brokers did not answer, or refused.
        """
        consumer = self._consumer
        found = consumer.list_topics(timeout=PATIENCE).topics
        names = wanted(self._topics, (name for name, topic in found.items() if topic.error is None))
        places = tuple(PartitionId(name, number) for name in names for number in sorted(found[name].partitions))
        committed = consumer.committed([self._point(*place) for place in places], timeout=PATIENCE) if places else ()
        stored = {
            PartitionId(point.topic, point.partition): Stored(point.offset, point.metadata or "")
            for point in committed
            if point.offset >= 0
        }
        chosen = choose(places)
        spans = {
            place: Span(*consumer.get_watermark_offsets(self._point(*place), timeout=PATIENCE)) for place in chosen
        }
        found_at = {moment: self._at(moment, spans) for moment in moments}
        return Survey(places, missing(self._topics, names), stored, spans, found_at)

    def close(self) -> None:
        """Waits for the thread, which ends when the brokers have answered or their time is over."""
        self._pool.shutdown(cancel_futures=True)

    def _at(self, moment: datetime, spans: dict[PartitionId, Span]) -> dict[PartitionId, int]:
        """The first offset of each partition that is not older; its end if there is none."""
        if not spans:
            return {}
        stamp = int(moment.timestamp() * 1000)
        found = self._consumer.offsets_for_times([self._point(*place, stamp) for place in spans], timeout=PATIENCE)
        points = {PartitionId(point.topic, point.partition): point.offset for point in found}
        return {place: points[place] if points[place] >= 0 else span.end for place, span in spans.items()}
