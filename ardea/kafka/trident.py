"""Trident spouts over topics: the offsets of each batch are in the transaction state."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NoReturn, Self, TypeVar

from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import FailedException, UserError
from ardea.kafka.batch_rows import BatchRows, Undecodable
from ardea.kafka.client import CONSUMER, Connection, kafka, properties
from ardea.kafka.fetching import Deleted, Fetcher
from ardea.kafka.marks import PartitionId
from ardea.kafka.reach import NEWS, Reach, place_of
from ardea.kafka.sharing import Topics, missing, waits_for, wanted
from ardea.kafka.source import (
    UNDECODABLE,
    Bound,
    bound_problems,
    check_end,
    choice_problems,
    key_and_value,
    position_problems,
    refuse,
    topic_problems,
)
from ardea.kafka.survey import PATIENCE
from ardea.metrics.user import CountMetric
from ardea.trident.operations import Collector
from ardea.trident.partitioned import PartitionedSpout
from ardea.trident.spout import Attempt, Emitter
from ardea.trident.store import StreamStore

REFRESH = 10.0
AWAIT = 0.5
T = TypeVar("T")
Begin = Literal["earliest", "latest"] | datetime


class KafkaTridentSpout(PartitionedSpout):
    """Reads topics in batches; made by one of two class methods.  Guarantees and failures: docs/kafka.md.

    A position is [offset of the first record, offset behind the last].
    """

    clock: Callable[[], float] = staticmethod(time.monotonic)

    def __init__(
        self,
        topics: str | Sequence[str] | re.Pattern[str],
        outputs: Sequence[str] = ("key", "value"),
        translate: Callable[[Any], Sequence[Any] | None] = key_and_value,
        *,
        opaque: bool,
        records: int = 1000,
        start: Begin = "earliest",
        end: Bound | None = None,
        deleted: Literal["fail", "earliest", "latest"] = "fail",
        undecodable: Undecodable = "fail",
    ) -> None:
        names: Topics = [topics] if isinstance(topics, str) else topics
        problems = [
            *topic_problems(names),
            *position_problems("start", start, ("earliest", "latest")),
            *bound_problems(end),
            *choice_problems("deleted", deleted, ("fail", "earliest", "latest")),
            *choice_problems("undecodable", undecodable, ("fail", "skip", "emit")),
        ]
        if type(records) is not int or records < 1:
            problems.append(f"records= takes a number from 1, not {records!r}")
        refuse("KafkaTridentSpout", problems)
        fields = [outputs] if isinstance(outputs, str) else list(outputs)
        self.outputs = [*fields, UNDECODABLE] if undecodable == "emit" else fields
        self.opaque = self.committing = opaque
        self._topics, self._translate, self._records = names, translate, records
        self._start, self._deleted, self._undecodable, self._width = start, deleted, undecodable, len(fields)
        self._end = {PartitionId(*place): offset for place, offset in end.items()} if isinstance(end, Mapping) else end

    @classmethod
    def transactional(cls, topics: str | Sequence[str] | re.Pattern[str], *args: Any, **options: Any) -> Self:
        """Repeats batches exactly.

        Args:
            topics: a name, names, or a pattern that a whole name matches.
            *args: ``outputs``, the fields, and ``translate``, from a message to a row, or None to leave it out.
            **options: ``records``: the most of a partition in one batch; ``start``: where a stream begins that was
                not read before; ``end``: where it is finished; ``deleted``: what happens where records are gone;
                ``undecodable``: what happens to records that cannot be translated, or are too large; ``emit``: the
                stream has one more field, ``undecodable``, which is None but for these, and has what is in that stream
                of ``KafkaSpout``; their other fields are None.

        Raises:
            TopologyError: an argument is wrong; all problems at once.
        """
        return cls(topics, *args, opaque=False, **options)

    @classmethod
    def opaque_transactional(cls, topics: str | Sequence[str] | re.Pattern[str], *args: Any, **options: Any) -> Self:
        """The same as an opaque spout: a batch that is repeated may have other records."""
        return cls(topics, *args, opaque=True, **options)

    def open(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Connects."""
        fixed = {
            "group.id": context.topology_id,  # librdkafka wants one; nothing is committed to it
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
        self._lib = kafka()
        self._context = context
        self._skipped = context.register_metric("kafka-skipped", CountMetric())
        logger = logging.getLogger(context.this_component_id)
        self._connection = Connection(properties(config), logger, self.clock)
        self._consumer = self._connection.open("Consumer", CONSUMER, fixed)
        self._fetcher = Fetcher(self._connection, self._consumer, self._records, self.clock)
        self._begin(Settings.of(config).max_tuple_bytes)

    def _begin(self, most: int) -> None:
        """``most``: bytes of a record."""
        self._known: list[str] = []
        self._next_look = 0.0
        self._complete = False  # whether a look has found all that is to be read to its end
        self._latest: dict[PartitionId, int] = {}
        self._reach = Reach(self.partitions, self._end_of, self._end, self.clock)
        self._rows = BatchRows(
            self._translate, self._width, self._undecodable, most, skips=self._skip, ends=self._end_task
        )

    def emitter(self, config: Mapping[str, Any], context: TopologyContext, store: StreamStore) -> Emitter[list[str]]:
        """Knows by the store whether the stream begins."""
        self._store = store
        return super().emitter(config, context, store)

    def partitions(self) -> Sequence[str]:
        """``TOPIC/NUMBER`` of each partition, looked at every ten seconds.

        The topology FAILs where one is not there that is to be read to its end.  After a look that has found all it
        only waits: a broker that has just begun may not know all topics yet.
        """
        now = self.clock()
        if now >= self._next_look:
            found = self._asked(lambda: self._consumer.list_topics(timeout=PATIENCE).topics)
            names = wanted(self._topics, (name for name, topic in found.items() if topic.error is None))
            places = [PartitionId(name, number) for name in names for number in sorted(found[name].partitions)]
            self._check(missing(self._topics, names), places)
            self._known = [f"{place.topic}/{place.partition}" for place in places]
            self._next_look = now + (REFRESH if self._known else NEWS)
        return self._known

    def emit_new(self, attempt: Attempt, partition: str, last: Any, collector: Collector) -> list[int]:
        """What has come; the position is [first offset, behind the last]."""
        place = place_of(partition)
        begin = last[1] if last else self._first(attempt, place)
        end = self._end.get(place, 0) if isinstance(self._end, Mapping) else None
        if end is not None and begin >= end:
            span = self._asked(lambda: self._fetcher.span(place))
            begin = begin if begin <= span.end else self._instead(Deleted(place, begin, span))
            if begin >= end:
                return [begin, begin]
        try:
            messages, behind = self._fetcher.new(place, begin, end, AWAIT)
        except Deleted as gone:
            begin = self._instead(gone)
            messages, behind = self._fetcher.new(place, begin, end, AWAIT)
        self._rows.emit(place, messages, collector)
        return [begin, behind]

    def emit_again(self, attempt: Attempt, partition: str, position: Any, collector: Collector) -> None:
        """The same records, or none: the batch fails until they can be read."""
        place = place_of(partition)
        begin, end = position
        try:
            messages = self._fetcher.again(place, begin, end, PATIENCE)
            if messages is None and (span := self._asked(lambda: self._fetcher.span(place))).end < end:
                raise Deleted(place, end - 1, span)
        except Deleted as gone:
            first = min(end, max(begin, self._instead(gone)))
            # Where a topic ends before what was read of it, it was made anew: what is there are other records.
            messages = [] if gone.span.end < end else self._fetcher.again(place, first, end, PATIENCE)
        if messages is None:
            what = f"transaction {attempt.txid}: {begin} to {end} of {place} cannot be read now; the batch comes again"
            self._connection.quiet.say(logging.WARNING, place, what)
            raise FailedException(what)
        self._rows.emit(place, messages, collector)

    def is_ready(self, positions: Mapping[str, Any]) -> bool:
        """Whether a partition has records behind its position, or none yet; looked at five times a second."""
        return self._look(positions).ready

    def finished(self, positions: Mapping[str, Any]) -> bool:
        """Whether everything up to the end has been read."""
        if self._end is None:
            return False
        return self._look(positions).over

    def close(self) -> None:
        """Disconnects."""
        self._consumer.close()

    def _check(self, away: Sequence[str], places: Sequence[PartitionId]) -> None:
        """``away``: topics that are not there."""
        if not self._complete:
            try:
                check_end(self._end, away, places)
            except UserError as error:
                self._end_task(error)
            self._complete = True
        for topic in away:
            self._connection.quiet.say(logging.WARNING, topic, waits_for(topic))

    def _look(self, positions: Mapping[str, Any]) -> Reach:
        if self._reach.due:
            self._connection.check()
            self._reach.look(positions)
        return self._reach

    def _end_of(self, place: PartitionId) -> int | None:
        """None: nobody answers."""
        try:
            return self._fetcher.span(place).end
        except self._lib.KafkaException as error:
            self._unanswered(error)
            return None

    def _first(self, attempt: Attempt, place: PartitionId) -> int:
        """Where a partition begins that has no position: one that appears later, at its first record.

        The latest is where it was at the first attempt of this life: what has come since is in the next one.
        """
        first, end = self._asked(lambda: self._fetcher.span(place))
        if self._start == "earliest" or any(known < attempt.txid for known in self._store.transactions("meta")):
            return first
        if self._start == "latest":
            return self._latest.setdefault(place, end)
        point = self._lib.TopicPartition(*place, int(self._start.timestamp() * 1000))
        [found] = self._asked(lambda: self._consumer.offsets_for_times([point], timeout=PATIENCE))
        return int(found.offset) if found.offset >= 0 else end

    def _skip(self, place: PartitionId, error: Exception, unread: UserError) -> None:
        self._skipped.incr()
        self._connection.quiet.say(logging.ERROR, (place, type(error)), f"{unread}; reading goes on after it")

    def _instead(self, gone: Deleted) -> int:
        """Where to go on, if the author has allowed it."""
        if self._deleted == "fail":
            hint = "Give deleted='earliest' or 'latest' to go on without them."
            self._end_task(UserError(f"{gone}: records were deleted before they were read", hint=hint))
        begin = gone.span.first if self._deleted == "earliest" else gone.span.end
        self._connection.logger.error("%s; goes on at %d", gone, begin)
        return begin

    def _end_task(self, error: UserError) -> NoReturn:
        """What is raised while a batch is emitted only fails the batch."""

        def end() -> NoReturn:
            raise error

        self._context.submit(end)
        raise FailedException(error.message)

    def _asked(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except self._lib.KafkaException as error:
            self._unanswered(error)
            raise FailedException("no broker answers") from error

    def _unanswered(self, error: Any) -> None:
        self._connection.refuse(error.args[0])
        self._connection.silence(error.args[0].str())
