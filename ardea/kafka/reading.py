"""The task of a Kafka spout: asks the client for records, emits them, commits what is done."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any

from ardea.component import Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.kafka.assignment import Assignment
from ardea.kafka.beginning import mark_of
from ardea.kafka.client import CONSUMER, Connection, kafka, properties
from ardea.kafka.commits import Commits
from ardea.kafka.marks import Marks, Numbers, PartitionId
from ardea.kafka.positions import Positions
from ardea.kafka.rows import Rows, by_place
from ardea.kafka.sharing import waits_for
from ardea.kafka.source import Source
from ardea.kafka.stamps import PartitionTimes
from ardea.kafka.survey import Span, Survey, Surveyor
from ardea.keyed import ListState
from ardea.metrics.user import AssignableMetric, CountMetric
from ardea.state import paths

KEEP = 0.2
REFRESH = 10.0
LAST_COMMIT = 5.0
RECORDS = 1000
BYTES = 1 << 20
AT_ONCE = 500  # of the client's messages; with more of them than the processor's cache holds each takes longer


class RecordSpout(Spout):
    """Reads the partitions that are its own.

    ``tup_id`` is ((topic, partition), offset), and a number for a row of a batch.  Acks are worked off now and then.
    """

    _has_partitions = True
    source: Source
    stamped: int = 0  # the place of the field with stamps
    positions = ListState(share="all")  # [topic, partition, offset, perhaps its end], as of the last snapshot
    complete = ListState(share="all")  # the marks of bounded tasks that have all that they ever will have
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Connects; where to begin is found out in the background."""
        settings = Settings.of(config)
        self._run = context.topology_id
        self._lib = kafka()
        self._connection = Connection(properties(config), self.logger, self.clock)
        self._marks: dict[PartitionId, Marks] = {}
        self._numbers = Numbers()
        group = self.source.group or f"{paths.name_of(self._run)}.{context.this_component_id}"
        self._commits = Commits(self._connection, group, mark_of(self._run), self._marks, self._numbers)
        fixed = {
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "on_commit": self._commits.heard,
        }
        self._consumer = self._connection.open("Consumer", CONSUMER, fixed)
        self._surveyor = Surveyor(self._consumer, self.source.topics)
        self._reading: set[PartitionId] = set()  # those that the client has been given
        self._astray: set[PartitionId] = set()  # of those, where what is to be read next is not there
        self._topics: set[str] = set()  # of which it has ever been given any
        self._spans: dict[PartitionId, Span] = {}
        self._lags: dict[PartitionId, AssignableMetric] = {}
        self._context = context
        self._skipped = context.register_metric("kafka-skipped", CountMetric())
        by_batch = self.source.translate_batch is not None
        self._most = min(settings.batch_rows if by_batch else RECORDS, settings.max_spout_pending)
        self._next_keep = self._next_survey = -math.inf
        self._finished = False
        self._times = PartitionTimes(self._time, self.stamped)
        self._rows = Rows(self, self.source, context, self._numbers, self._times, self._skip, settings.max_tuple_bytes)
        self._positions: Positions | None = None
        if settings.remembers:
            tasks = len(context.component_tasks(context.this_component_id))
            self._mark = [self._run, context.plan_epoch, context.this_task_index]
            complete = self._mark in self.complete
            self._positions = Positions(self.positions, context.this_task_index, tasks, complete=complete)
        self._share(context)

    def update(self, context: TopologyContext) -> None:
        """With another number of tasks, the partitions are shared anew; with snapshots, by another object."""
        if self._positions is None:
            self._share(context)
            self._finished = False
            self._collector.reopen()

    def snapshot(self, number: int) -> None:
        """Writes down how far it is."""
        if self._positions is not None:
            self.positions[:] = self._positions.take(number, self._marks)
            self.complete[:] = [self._mark] if self._assignment.complete(self._marks) else []

    def committed(self, number: int) -> None:
        """The group hears of it with the next commit."""
        if self._positions is not None:
            self._positions.counts(number, self._marks)

    def _share(self, context: TopologyContext) -> None:
        tasks = len(context.component_tasks(context.this_component_id))
        self._assignment = Assignment(self.source, self._run, context.this_task_index, tasks, self._positions)
        self._survey_anew()

    def _survey_anew(self) -> None:
        """Soon; what one finds that has begun may be over."""
        self._surveyor.forget()
        self._next_survey = -math.inf

    def next_tuple(self) -> None:
        """Some thousand records, if they are there."""
        self._keep()
        left, self._rows.size = self._most, 0
        while left > 0:
            wanted = min(AT_ONCE, left)
            messages = self._consumer.consume(wanted, 0)
            for place, some in by_place(self._lib.Message, messages, self._topics):
                self._take(place, some)
            left = left - wanted if len(messages) == wanted and self._rows.size < BYTES else 0
        self._rows.emit_gathered()

    def ack_batch(self, tup_ids: Any) -> None:
        """Records are done."""
        self._commits.acked(tup_ids)

    def describe_tup_id(self, tup_id: Any) -> str:
        """Where the record is."""
        place, offset = tup_id if type(tup_id) is tuple else self._numbers.of(tup_id)
        return f"topic {place.topic}, partition {place.partition}, offset {offset}"

    def idle(self) -> None:
        """Paused, pending full, or finished: what is acked is committed all the same."""
        self._keep()

    def close(self) -> None:
        """Commits what is done, if a broker answers soon."""
        self._surveyor.close()
        self._settle()
        self._consumer.unassign()
        self._commits.commit(self._consumer)
        deadline = self.clock() + LAST_COMMIT
        while self._commits.unconfirmed and self.clock() < deadline:
            self._consumer.poll(0.1)
        self._consumer.close()

    # --- records ----------------------------------------------------------------------------------------------

    def _take(self, place: PartitionId, messages: list[Any]) -> None:
        """Those of one partition, in order, and what the client has to say between them."""
        if place not in self._reading:
            return  # it has become another task's, or has been read to its end
        marks = self._marks[place]
        if any(map(self._lib.Message.error, messages)):
            for sort, some in groupby(messages, lambda message: message.error() is None):
                if sort:
                    self._rows.take(place, marks, list(some))
                else:
                    for message in some:
                        self._news(place, marks, message)
        else:
            self._rows.take(place, marks, messages)
        if self._marks[place].exhausted:
            self._leave(place)
            self._times.left(place)

    def _skip(self, place: PartitionId, error: Exception, unread: UserError) -> None:
        self._skipped.incr()
        self._connection.quiet.say(logging.ERROR, (place, type(error)), f"{unread}; reading goes on after it")

    def _news(self, place: PartitionId, marks: Marks, message: Any) -> None:
        """Not a record."""
        error, codes = message.error(), self._lib.KafkaError
        if error.code() == codes._PARTITION_EOF:
            marks.passed(message.offset())
            self._times.at_end(place)
        elif error.code() == codes._AUTO_OFFSET_RESET:
            self._astray.add(place)  # what is there is found out in the background: who leads it may not answer
            self._survey_anew()
        else:
            self._connection.refuse(error)
            self._connection.quiet.say(logging.WARNING, (place, error.code()), f"{place}: {error.str()}")

    def _deleted(self, place: PartitionId, marks: Marks, span: Span) -> None:
        """The offset that is to be read next is not there, but those of the span."""
        what = f"offset {marks.position} of {place} is to be read next, but there are only {span.first} to {span.end}"
        self.source.allow_loss(what)
        begin = span.first if self.source.deleted == "earliest" else span.end
        skipped = max(0, begin - marks.position)  # none, if a new topic of the same name is shorter
        self._skipped.incr(skipped)
        self.logger.error("%s: %d were skipped, and reading goes on at %d", what, skipped, begin)
        self._leave(place)
        self._begin(place, type(marks)(begin, end=marks.end))

    def _vanished(self, place: PartitionId) -> None:
        """It was deleted with its topic."""
        marks = self._marks[place]
        end = self._spans[place].end if marks.end is None else marks.end
        unread = max(0, end - marks.position)
        what = f"{place} is not there any more; it was read up to offset {marks.position} of {end}"
        if unread:
            self.source.allow_loss(what)
        self._skipped.incr(unread)
        self.logger.warning("%s: %d were skipped, and the others are read on", what, unread)
        self._drop(place)

    # --- partitions -------------------------------------------------------------------------------------------

    def _keep(self) -> None:
        """What is due."""
        now = self.clock()
        if now < self._next_keep:
            return
        self._next_keep = now + KEEP
        if self._connection.troubled:
            self._times.silent(self._reading)
        self._connection.check()
        self._settle()
        self._commits.keep(self._consumer, now)
        try:
            survey = self._surveyor.answer()
        except self._lib.KafkaException as error:
            self._connection.refuse(error.args[0])
            self._connection.silence(error.args[0].str())
            self._times.silent(self._reading)
            survey = None
        if survey is not None:
            self._surveyed(survey)
            self._next_survey = now + (REFRESH if self._assignment.begun else KEEP)
        if now >= self._next_survey:
            self._surveyor.ask(self._assignment.needs, self._assignment.moments)
        if self.source.end is not None and self._assignment.begun and not self._finished:
            self._finished = all(marks.exhausted for marks in self._marks.values())
            if self._finished:
                self.finish()

    def _surveyed(self, survey: Survey) -> None:
        for topic in survey.missing:
            self._connection.quiet.say(logging.WARNING, topic, waits_for(topic))
        steps = self._assignment.decide(survey, self._marks)
        if steps.line:
            self._commits.send(self._consumer, dict(steps.line))
        for place in steps.lost:
            self._commits.commit(self._consumer)
            self._drop(place)
        for place in steps.gone:
            self._vanished(place)
        for place, marks in steps.gained.items():
            if marks.exhausted and marks.position > survey.spans[place].end:
                self._deleted(place, marks, survey.spans[place])  # nobody would ask for such an offset, and be told so
            else:
                self._begin(place, marks)
        for place in sorted(self._astray & survey.spans.keys()):
            self._deleted(place, self._marks[place], survey.spans[place])
        self._spans.update(survey.spans)
        for place in self._reading:
            if place in survey.spans and self._marks[place].position >= survey.spans[place].end:
                self._times.at_end(place)
        if self._assignment.begun:
            self._times.known()
        self._measure()

    def _begin(self, place: PartitionId, marks: Marks) -> None:
        self._marks[place] = marks
        if place not in self._lags:
            name = f"kafka-lag/{place.topic}/{place.partition}"
            self._lags[place] = self._context.register_metric(name, AssignableMetric())
        if marks.exhausted:
            self._times.left(place)
        else:
            self._times.begins(place)
            self._reading.add(place)
            self._topics.add(place.topic)
            self._consumer.incremental_assign([self._lib.TopicPartition(*place, marks.position)])
            self.logger.info("reads %s from offset %d", place, marks.position)

    def _leave(self, place: PartitionId) -> None:
        """Reads no more of it; what is open is committed as it is acked, as long as there are marks."""
        if place in self._reading:
            self._reading.remove(place)
            self._astray.discard(place)
            self._consumer.incremental_unassign([self._lib.TopicPartition(*place)])

    def _drop(self, place: PartitionId) -> None:
        """It is another task's, or nobody's."""
        self._leave(place)
        self._times.left(place)
        if self._positions is not None:
            self._positions.leave(place, self._marks[place])
        del self._marks[place]
        self._spans.pop(place, None)
        self._lags[place].update(0)

    def _settle(self) -> None:
        self._commits.settle()
        self._measure()

    def _measure(self) -> None:
        for place, marks in self._marks.items():
            if (span := self._spans.get(place)) is not None:
                self._lags[place].update(max(0, span.end - marks.low))
