"""The task of a Kafka spout: asks the client for records, emits them, commits what is done."""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import compress, groupby, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.component import Spout
from ardea.config import Settings
from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.kafka.assignment import Assignment
from ardea.kafka.beginning import mark_of
from ardea.kafka.client import CONSUMER, Connection, kafka, properties
from ardea.kafka.marks import Marks, Offsets, PartitionId, offsets_by_place, row_ids, to_commit
from ardea.kafka.positions import Positions
from ardea.kafka.source import UNDECODABLE, Source, check_size, unfit, unfit_row
from ardea.kafka.stamps import PartitionTimes
from ardea.kafka.survey import PATIENCE, Span, Survey, Surveyor
from ardea.kafka.traces import continue_traces
from ardea.keyed import ListState
from ardea.metrics.user import AssignableMetric, CountMetric
from ardea.protocol.arrow import arrow
from ardea.state import paths

KEEP = 0.2
COMMIT = 1.0
REFRESH = 10.0
RENEW = 3600.0
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
    clock: Callable[[], float] = staticmethod(time.monotonic)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Connects; where to begin is found out in the background."""
        settings = Settings.of(config)
        self._run = context.topology_id
        self._group = self.source.group or f"{paths.name_of(self._run)}.{context.this_component_id}"
        fixed = {
            "group.id": self._group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "on_commit": self._committed,
        }
        self._lib = kafka()
        self._connection = Connection(properties(config), self.logger, self.clock)
        self._consumer = self._connection.open("Consumer", CONSUMER, fixed)
        self._surveyor = Surveyor(self._consumer, self.source.topics)
        self._marks: dict[PartitionId, Marks] = {}
        self._reading: set[PartitionId] = set()  # those that the client has been given
        self._topics: set[str] = set()  # of which it has ever been given any
        self._spans: dict[PartitionId, Span] = {}
        self._lags: dict[PartitionId, AssignableMetric] = {}
        self._context = context
        self._skipped = context.register_metric("kafka-skipped", CountMetric())
        by_batch = self.source.translate_batch is not None
        self._most = min(settings.batch_rows if by_batch else RECORDS, settings.max_spout_pending)
        self._most_bytes = settings.max_tuple_bytes
        self._numbers: dict[PartitionId, int] = {}  # 0, 1, ...: in the ids of rows of batches
        self._gathered: defaultdict[PartitionId, list[tuple[Any, Offsets]]] = defaultdict(list)  # not emitted yet
        self._size = 0  # bytes that this call of next_tuple has read, at most
        self._acked: list[Any] = []
        self._acked_numbers: list[NDArray[np.int64]] = []
        self._next_keep = self._next_survey = self._next_commit = -math.inf
        self._next_renewal = self.clock() + RENEW
        self._unconfirmed = 0
        self._finished = False
        self._times = PartitionTimes(self._time, self.stamped)
        self._positions: Positions | None = None
        if settings.remembers:
            tasks = len(context.component_tasks(context.this_component_id))
            self._positions = Positions(self.positions, context.this_task_index, tasks)
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

    def committed(self, number: int) -> None:
        """The group hears of it with the next commit."""
        if self._positions is not None:
            self._positions.counts(number, self._marks)

    def _share(self, context: TopologyContext) -> None:
        tasks = len(context.component_tasks(context.this_component_id))
        self._assignment = Assignment(self.source, self._run, context.this_task_index, tasks, self._positions)
        self._next_survey = -math.inf

    def next_tuple(self) -> None:
        """Some thousand records, if they are there."""
        self._keep()
        left, self._size = self._most, 0
        while left > 0:
            wanted = min(AT_ONCE, left)
            messages = self._consumer.consume(wanted, 0)
            for place, some in self._by_place(messages):
                self._take(place, some)
            left = left - wanted if len(messages) == wanted and self._size < BYTES else 0
        self._emit_gathered()

    def ack_batch(self, tup_ids: Any) -> None:
        """Records are done."""
        if isinstance(tup_ids, np.ndarray):
            self._acked_numbers.append(tup_ids)
        else:
            self._acked += tup_ids

    def describe_tup_id(self, tup_id: Any) -> str:
        """Where the record is."""
        if type(tup_id) is tuple:
            place, offset = tup_id
        else:
            ((number, (offset,)),) = offsets_by_place(np.array([tup_id], dtype=np.int64)).items()
            place = next(place for place, known in self._numbers.items() if known == number)
        return f"topic {place.topic}, partition {place.partition}, offset {offset}"

    def idle(self) -> None:
        """Paused, pending full, or finished: what is acked is committed all the same."""
        self._keep()

    def close(self) -> None:
        """Commits what is done, if a broker answers soon."""
        self._surveyor.close()
        self._settle()
        self._consumer.unassign()
        self._commit()
        deadline = self.clock() + LAST_COMMIT
        while self._unconfirmed and self.clock() < deadline:
            self._consumer.poll(0.1)
        self._consumer.close()

    # --- records ----------------------------------------------------------------------------------------------

    def _by_place(self, messages: list[Any]) -> Iterator[tuple[PartitionId, list[Any]]]:
        """Runs of one partition.  Asking each message for its topic, too, is left out where there is only one."""
        kind, (first, *others) = self._lib.Message, self._topics or {""}
        for partition, run in groupby(messages, kind.partition):
            if not others:
                yield PartitionId(first, partition), list(run)
                continue
            for topic, some in groupby(run, kind.topic):
                yield PartitionId(topic, partition), list(some)

    def _take(self, place: PartitionId, messages: list[Any]) -> None:
        """Those of one partition, in order, and what the client has to say between them."""
        if place not in self._reading:
            return  # it has become another task's, or has been read to its end
        marks = self._marks[place]
        if any(map(self._lib.Message.error, messages)):
            for sort, some in groupby(messages, lambda message: message.error() is None):
                if sort:
                    self._records(place, marks, list(some))
                else:
                    for message in some:
                        self._news(place, marks, message)
        else:
            self._records(place, marks, messages)
        if self._marks[place].exhausted:
            self._leave(place)
            self._times.left(place)

    def _records(self, place: PartitionId, marks: Marks, messages: list[Any]) -> None:
        first, last = messages[0].offset(), messages[-1].offset()
        if last - first == len(messages) - 1:  # they ascend: there are no gaps
            offsets = np.arange(first, last + 1, dtype=np.int64)
        else:
            offsets = np.fromiter(map(self._lib.Message.offset, messages), np.int64, len(messages))
        if first < marks.position or (marks.end is not None and last >= marks.end):
            end = math.inf if marks.end is None else marks.end
            good = (offsets >= marks.position) & (offsets < end)
            messages, offsets = list(compress(messages, good.tolist())), offsets[good]
        if messages:
            try:
                largest = max(map(len, messages))
                self._size += largest * len(messages)
                if largest > self._most_bytes:
                    raise ValueError("too large")
                rows = self._translated(messages)
            except UserError:
                raise
            except Exception:  # of the author's function
                for message in messages:
                    self._single(place, marks, message)
            else:
                self._follow(place, messages, offsets)
                self._emit(place, marks, rows, offsets)
        marks.passed(last + 1)

    def _follow(self, place: PartitionId, messages: list[Any], offsets: Offsets) -> None:
        """Traces that the records bring go on."""
        if (go_on := self._context.continue_trace) is None:
            return
        ids: Any = zip(repeat(place), offsets.tolist())
        if self.source.translate_batch is not None:
            ids = row_ids(self._numbers.setdefault(place, len(self._numbers)), offsets).tolist()
        continue_traces(go_on, ids, messages)

    def _translated(self, messages: list[Any]) -> Any:
        """A list of rows, or a record batch."""
        if (translate := self.source.translate_batch) is None:
            return list(map(self.source.translate, messages))
        batch = translate(messages)
        if not isinstance(batch, arrow().RecordBatch):
            raise UserError(
                f"translate_batch made a value of type {type(batch).__qualname__}, not a pyarrow.RecordBatch"
            )
        if batch.num_rows != len(messages):
            raise UserError(f"translate_batch made {batch.num_rows} rows of {len(messages)} records")
        return batch

    def _emit(self, place: PartitionId, marks: Marks, rows: Any, offsets: Offsets) -> None:
        self._times.rows(place, rows)
        if self.source.translate_batch is not None:
            self._gathered[place].append((rows, offsets))
            marks.read(offsets)
            return
        emit = self.emit
        left_out = []
        for row, tup_id in zip(rows, zip(repeat(place), offsets.tolist()), strict=True):
            if row is None:
                left_out.append(tup_id[1])
            else:
                emit(row, tup_id)
        marks.read(np.setdiff1d(offsets, left_out) if left_out else offsets)

    def _emit_gathered(self) -> None:
        """What ``translate_batch`` made of a partition's records at hand, as few batches."""
        for place, parts in self._gathered.items():
            number = self._numbers.setdefault(place, len(self._numbers))
            for _, alike in groupby(parts, lambda part: part[0].schema):
                batches, offsets = zip(*alike, strict=True)
                ids = row_ids(number, np.concatenate(offsets))
                for batch in arrow().Table.from_batches(batches).combine_chunks().to_batches():
                    self.emit_batch(batch, ids[: batch.num_rows])
                    ids = ids[batch.num_rows :]
        self._gathered.clear()

    def _single(self, place: PartitionId, marks: Marks, message: Any) -> None:
        """One of a batch with a record that is too large, or that cannot be translated."""
        offset = message.offset()
        try:
            check_size(message, self._most_bytes)
            rows = self._translated([message])
        except UserError:
            raise
        except Exception as error:
            unread = unfit(place, message, error)
            if self.source.undecodable == "fail":
                raise unread from error
            self._skipped.incr()
            self._connection.quiet.say(logging.ERROR, (place, type(error)), f"{unread}; reading goes on after it")
            if self.source.undecodable == "emit":
                self.emit(unfit_row(place, message, error, self._most_bytes), (place, offset), UNDECODABLE)
                marks.read([offset])
        else:
            self._follow(place, [message], np.array([offset]))
            self._emit(place, marks, rows, np.array([offset]))

    def _news(self, place: PartitionId, marks: Marks, message: Any) -> None:
        """Not a record."""
        error, codes = message.error(), self._lib.KafkaError
        if error.code() == codes._PARTITION_EOF:
            marks.passed(message.offset())
            self._times.at_end(place)
        elif error.code() == codes._AUTO_OFFSET_RESET:
            self._deleted(place, marks)
        else:
            self._connection.refuse(error)
            self._connection.quiet.say(logging.WARNING, (place, error.code()), f"{place}: {error.str()}")

    def _deleted(self, place: PartitionId, marks: Marks) -> None:
        """The offset that is to be read next is not there."""
        point = self._lib.TopicPartition(*place)
        span = Span(*self._consumer.get_watermark_offsets(point, timeout=PATIENCE))
        what = f"offset {marks.position} of {place} is to be read next, but there are only {span.first} to {span.end}"
        self._allow(what)
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
            self._allow(what)
        self._skipped.incr(unread)
        self.logger.warning("%s: %d were skipped, and the others are read on", what, unread)
        self._drop(place)

    def _allow(self, what: str) -> None:
        """Raises UserError, unless the author goes on without records."""
        if self.source.deleted == "fail":
            raise UserError(
                f"{what}: records were deleted before they were read",
                hint="Give deleted='earliest' or 'latest' to go on without them.",
            )

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
        if now >= self._next_commit:
            self._next_commit = now + COMMIT
            if now >= self._next_renewal:
                self._next_renewal = now + RENEW
                for marks in self._marks.values():
                    marks.committed = None
            self._commit()
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
            what = f"there is no topic {topic} that may be read; waits for it"
            self._connection.quiet.say(logging.WARNING, topic, what)
        steps = self._assignment.decide(survey, self._marks)
        if steps.line:
            self._send_commit(dict(steps.line))
        for place in steps.lost:
            self._commit()
            self._drop(place)
        for place in steps.gone:
            self._vanished(place)
        for place, marks in steps.gained.items():
            if marks.exhausted and marks.position > survey.spans[place].end:
                self._deleted(place, marks)  # nobody would ask for such an offset, and be told so
            else:
                self._begin(place, marks)
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
            self._consumer.incremental_unassign([self._lib.TopicPartition(*place)])

    def _drop(self, place: PartitionId) -> None:
        """It is another task's, or nobody's."""
        self._leave(place)
        self._times.left(place)
        if self._positions is not None:
            self._positions.forget(place)
        del self._marks[place], self._spans[place]
        self._lags[place].update(0)

    # --- commits ----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        acked, self._acked = self._acked, []
        arrays, self._acked_numbers = self._acked_numbers, []
        if self._numbers:  # rows of a batch that were sent again come one by one
            arrays.append(np.array([one for one in acked if type(one) is int], dtype=np.int64))
            acked = [one for one in acked if type(one) is tuple]
        done: defaultdict[PartitionId, list[int]] = defaultdict(list)
        for place, offset in acked:
            done[place].append(offset)
        numbers = np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
        by_number = offsets_by_place(numbers)
        for place, marks in self._marks.items():
            marks.done(done[place])
            marks.done(by_number.get(self._numbers.get(place, -1), ()))
        self._measure()

    def _measure(self) -> None:
        for place, marks in self._marks.items():
            if (span := self._spans.get(place)) is not None:
                self._lags[place].update(max(0, span.end - marks.low))

    def _commit(self) -> None:
        if changed := to_commit(self._marks):
            self._send_commit(changed)

    def _send_commit(self, offsets: dict[PartitionId, int]) -> None:
        mark = mark_of(self._run)
        points = [self._lib.TopicPartition(*place, offset, mark) for place, offset in offsets.items()]
        self._consumer.commit(offsets=points, asynchronous=True)
        self._unconfirmed += 1

    def _committed(self, error: Any, points: list[Any]) -> None:
        """Called by the client, inside ``consume`` and ``poll``."""
        self._unconfirmed -= 1
        for point in points:
            reason = error or point.error
            if reason is None:
                continue
            if (marks := self._marks.get(PartitionId(point.topic, point.partition))) is not None:
                marks.committed = None
            codes = self._lib.KafkaError
            why = reason.str()
            if reason.code() in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION, codes.REBALANCE_IN_PROGRESS):
                why = "somebody else has subscribed with it"
            self._connection.quiet.say(
                logging.ERROR, "commit", f"offsets cannot be committed to group {self._group}: {why}; tries again"
            )
