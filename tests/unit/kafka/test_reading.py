"""What a spout's task emits and commits of what its client gives it; the client is a script."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ardea.errors import UserError
from ardea.kafka import commits, reading, rows
from ardea.kafka.beginning import Stored, mark_of
from ardea.kafka.commits import COMMIT, RENEW
from ardea.kafka.marks import PartitionId
from ardea.kafka.reading import KEEP, RecordSpout
from ardea.kafka.sharing import share
from ardea.kafka.source import Source, key_and_value, unfit_row
from ardea.kafka.survey import Span, Survey
from ardea.protocol.values import RowCodec

RUN = "run-1"
SERVERS = {"kafka.bootstrap.servers": "here:9092"}


class Message:
    """A record of topic ``t``, or what the client says of it: an ``error``."""

    def __init__(
        self, offset: int, value: bytes = b"x", partition: int = 0, error: Any = None, key: bytes | None = None
    ) -> None:
        self._at, self._value, self._partition, self._error, self._key = offset, value, partition, error, key

    def __len__(self) -> int:
        return len(self._value)

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._at

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes:
        return self._value

    def error(self) -> Any:
        return self._error


class Task(RecordSpout):
    """Keeps what it emits: (ids, rows); ``messages`` wait in the client, ``commits`` were asked for.

    ``survey`` answers each question, and before it, once, what was ``asked`` for earlier.
    """

    source: Source

    def __init__(
        self,
        messages: list[Message],
        monkeypatch: pytest.MonkeyPatch,
        ends: dict[int, int],
        committed: int = 0,
        **more: Any,
    ) -> None:
        given = {"translate": key_and_value, "translate_batch": None, "end": None, **more}
        given = {"deleted": "fail", "undecodable": "fail", **given}
        self.source = Source(["t"], group=None, start="committed", otherwise="earliest", **given)
        self.emitted: list[tuple[list[Any], list[Any]]] = []
        self.commits: list[dict[int, int]] = []
        self.finished = False
        self.ends = ends
        self.now = 0.0
        self.clock = lambda: self.now
        places = tuple(PartitionId("t", number) for number in sorted(ends))
        stored = {place: Stored(committed, mark_of(RUN)) for place in places}
        self.survey = Survey(places, (), stored, {place: Span(0, ends[place.partition]) for place in places}, {})
        self.asked: Survey | None = None
        forget = lambda: setattr(self, "asked", None)  # noqa: E731
        surveyor = SimpleNamespace(answer=lambda: self.asked or self.survey, ask=lambda *_: None, forget=forget)
        consumer = SimpleNamespace(
            consume=lambda count, _: [messages.pop(0) for _ in messages[:count]],
            incremental_assign=lambda _: None,
            incremental_unassign=lambda _: None,
            get_watermark_offsets=lambda point, timeout: (0, ends[point.partition]),
            commit=lambda offsets, asynchronous: self.commits.append({p.partition: p.offset for p in offsets}),
        )
        quiet = SimpleNamespace(say=lambda *_: None)
        self.connection = connection = SimpleNamespace(
            open=lambda *_: consumer, check=lambda: None, quiet=quiet, troubled=False, silence=lambda _: None
        )
        connection.refuse = lambda _: None
        point = lambda topic, partition, offset=None, *_: SimpleNamespace(partition=partition, offset=offset)  # noqa: E731
        errors = SimpleNamespace(_PARTITION_EOF=1, _AUTO_OFFSET_RESET=2)
        lib = SimpleNamespace(Message=Message, TopicPartition=point, KafkaError=errors, KafkaException=ValueError)
        for module in (reading, commits, rows):
            monkeypatch.setattr(module, "kafka", lambda: lib)
        monkeypatch.setattr(reading, "Connection", lambda *_: connection)
        monkeypatch.setattr(reading, "Surveyor", lambda *_: surveyor)
        context = SimpleNamespace(
            topology_id=RUN,
            this_component_id="lines",
            this_task_index=0,
            plan_epoch=1,
            component_tasks=lambda _: [1],
            register_metric=lambda _, metric: metric,
            continue_trace=None,
        )
        self._collector = SimpleNamespace(reopen=lambda: setattr(self, "finished", False))
        self.initialize(SERVERS, context)

    def emit(self, values, tup_id=None, stream="default", direct_task=None, need_task_ids=False):
        self.emitted.append(([tup_id], [values]))

    def emit_many(self, rows, tup_ids=None, stream="default", direct_task=None, need_task_counts=False):
        for row, tup_id in zip(rows, itertools.repeat(None) if tup_ids is None else tup_ids, strict=False):
            self.emit(row, tup_id, stream)

    def emit_batch(self, batch, tup_ids=None, stream="default"):
        self.emitted.append((tup_ids, batch.to_pylist()))

    def finish(self):
        self.finished = True

    def look(self, *there: int) -> None:
        """A survey that finds these partitions, and what was committed."""
        places = tuple(PartitionId("t", number) for number in there)
        spans = {place: Span(0, self.ends[place.partition]) for place in places}
        committed = {PartitionId("t", number): offset for commit in self.commits for number, offset in commit.items()}
        stored = {place: Stored(offset, mark_of(RUN)) for place, offset in committed.items()}
        self.survey = self.survey._replace(places=places, spans=spans, stored=self.survey.stored | stored)
        self.now += KEEP
        self.idle()

    def committed(self) -> dict[int, int]:
        """Where the group is when all that is due is done."""
        self.now += COMMIT
        self.idle()
        return {partition: offset for commit in self.commits for partition, offset in commit.items()}


@pytest.mark.parametrize("by_batch", [False, True])
def test_rows_go_on_with_the_traces_of_their_records(by_batch, monkeypatch):
    def headers(message):
        return [("other", b"x"), ("traceparent", b"00-%d" % message.offset())] if message.offset() % 2 else None

    monkeypatch.setattr(Message, "headers", headers, raising=False)
    whole = {"translate_batch": lambda found: pa.record_batch({"value": [m.value() for m in found]})}
    task = Task(records(4), monkeypatch, {0: 4}, **(whole if by_batch else {}))
    told = []
    task._context.continue_trace = lambda tup_id, traceparent: told.append((tup_id, traceparent, len(task.emitted)))
    task.look(0)
    task.next_tuple()
    ids = [tup_id for some, _ in task.emitted for tup_id in (some.tolist() if by_batch else some)]
    assert told == [(ids[1], "00-1", 0), (ids[3], "00-3", 0)], "before they are emitted"


def records(count, partition=0):
    return [Message(offset, b"%d" % offset, partition) for offset in range(count)]


def test_what_is_behind_the_end_is_neither_emitted_nor_committed(monkeypatch):
    """It was written after the end was found, or is left for another reader: the next run begins with it."""
    task = Task(records(10), monkeypatch, {0: 10}, end={PartitionId("t", 0): 5})
    task.next_tuple()
    assert [rows for _, rows in task.emitted] == [[(None, b"%d" % offset)] for offset in range(5)]
    task.ack_batch([tup_id for ids, _ in task.emitted for tup_id in ids])
    assert task.committed() == {0: 5}
    assert task.finished


def test_what_was_committed_long_ago_is_committed_once_more(monkeypatch):
    """A group forgets offsets that nobody has confirmed for days."""
    task = Task(records(3), monkeypatch, {0: 3})
    task.next_tuple()
    task.ack_batch([tup_id for ids, _ in task.emitted for tup_id in ids])
    assert task.committed() == {0: 3}
    told = len(task.commits)
    for seconds in (RENEW / 2, RENEW / 2, COMMIT):
        task.now += seconds
        task.idle()
    assert task.commits[told:] == [{0: 3}]


@pytest.mark.parametrize("end", ["latest", {PartitionId("t", 0): 2}], ids=["latest", "given"])
def test_a_bounded_spout_does_not_take_a_shorter_topic_of_the_same_name_for_read(monkeypatch, end):
    with pytest.raises(UserError, match=r"offset 100 of t\[0\] is to be read next, but there are only 0 to 3"):
        Task([], monkeypatch, {0: 3}, committed=100, end=end).next_tuple()
    task = Task(records(3), monkeypatch, {0: 3}, committed=100, end=end, deleted="earliest")
    task.next_tuple()
    wanted = 3 if end == "latest" else 2
    task.ack_batch([tup_id for ids, _ in task.emitted for tup_id in ids])
    assert (len(task.emitted), task.committed(), task.finished) == (wanted, {0: wanted}, True)
    task = Task([], monkeypatch, {0: 3}, committed=100, end=end, deleted="latest")
    task.next_tuple()
    assert (task.emitted, task.committed(), task.finished) == ([], {0: 3}, True)


@pytest.mark.parametrize("deleted", ["earliest", "fail"])
def test_where_the_next_record_was_deleted_brokers_are_asked_until_one_answers(deleted, monkeypatch):
    def silent(*_, **__):
        raise ValueError(SimpleNamespace(str=lambda: "no leader"))

    lost = Message(2, error=SimpleNamespace(code=lambda: 2))
    waiting = [*records(2), lost, *records(3, partition=1)]
    task = Task(waiting, monkeypatch, {0: 9, 1: 9}, deleted=deleted)
    task.look(0, 1)
    task.asked = task.survey  # before the records were deleted
    task._consumer.get_watermark_offsets = silent
    answer, task._surveyor.answer = task._surveyor.answer, silent
    said = []
    task.connection.silence = said.append
    for _ in range(3):
        task.now += KEEP
        task.next_tuple()
    assert (len(task.emitted), said) == (5, ["no leader"] * 3), "the other partition is read on"
    task._surveyor.answer = answer
    task.survey = task.survey._replace(spans={PartitionId("t", 0): Span(5, 9), PartitionId("t", 1): Span(0, 9)})
    begun = []
    task._consumer.incremental_assign = begun.extend
    task.now += KEEP
    if deleted == "fail":
        with pytest.raises(UserError, match=r"offset 2 of t\[0\] is to be read next, but there are only 5 to 9"):
            task.next_tuple()
        return
    task.next_tuple()
    assert ([(point.partition, point.offset) for point in begun], task._skipped.value) == ([(0, 5)], 3)
    waiting += [Message(5)]
    task.look(0, 1)
    task.next_tuple()
    assert (len(task.emitted), len(begun)) == (6, 1)


def test_with_more_tasks_a_partition_is_left_to_another_and_with_fewer_it_comes_back_where_it_was_committed(
    monkeypatch,
):
    def tasks(count):
        every = list(range(count))
        task.update(SimpleNamespace(this_component_id="lines", this_task_index=0, component_tasks=lambda _: every))
        task.look(0, 1)

    def emitted():
        read, task.emitted = [tup_id for ids, _ in task.emitted for tup_id in ids], []
        return read

    waiting = [*records(3), *records(3, partition=1)]
    task = Task(waiting, monkeypatch, {0: 9, 1: 9})
    task.next_tuple()
    [kept] = share([PartitionId("t", 0), PartitionId("t", 1)], 0, 2)
    left = PartitionId("t", 1 - kept.partition)
    task.ack_batch([tup_id for tup_id in emitted() if tup_id[0] == left][:2])
    tasks(2)
    assert task.commits == [{left.partition: 2}], "as it was left"
    task.ack_batch([(left, 2)])
    waiting += [Message(3, partition=number) for number in (0, 1)]  # the client had it at hand
    task.next_tuple()
    assert emitted() == [(kept, 3)]
    assert task.committed() == {left.partition: 2}, "it is no longer for this task to say"
    tasks(1)
    waiting += [Message(offset, partition=left.partition) for offset in (2, 3)]
    task.next_tuple()
    assert emitted() == [(left, 2), (left, 3)]


@pytest.mark.parametrize("end", ["latest", None], ids=["bounded", "endless"])
def test_a_topic_that_is_deleted_while_it_is_read_is_not_taken_for_read(monkeypatch, caplog, end):
    def task(deleted):
        made = Task([*records(2), *records(3, partition=1)], monkeypatch, {0: 5, 1: 3}, end=end, deleted=deleted)
        made.next_tuple()
        made.look(1)
        assert not made.finished
        return made

    with pytest.raises(UserError, match=r"t\[0\] is not there any more; it was read up to offset 2 of 5: records were"):
        task("fail").look(1)
    made = task("earliest")
    made.look(1)
    assert "t[0] is not there any more; it was read up to offset 2 of 5: 3 were skipped" in caplog.text
    assert (made._skipped.value, made.finished) == (3, end == "latest")
    made.look()
    assert "t[1] is not there" not in caplog.text
    made.look()
    assert "t[1] is not there any more; it was read up to offset 3 of 3: 0 were skipped" in caplog.text


def by_kind(messages):
    """Batches of two schemas, in turn: the length of the first value decides."""
    name = "short" if len(messages[0].value()) == 1 else "long"
    return pa.record_batch({name: [int(message.value()) for message in messages]})


def test_batches_of_several_schemas_leave_apart_in_order_and_each_row_is_committed_when_it_is_done(monkeypatch):
    monkeypatch.setattr(reading, "AT_ONCE", 4)
    waiting = [*records(8), *(Message(offset, b"1%d" % offset) for offset in range(8, 16)), *records(4, partition=1)]
    task = Task(waiting, monkeypatch, {0: 16, 1: 4}, translate_batch=by_kind)
    task.next_tuple()
    assert [(list(rows[0]), len(rows)) for _, rows in task.emitted] == [(["short"], 8), (["long"], 8), (["short"], 4)]
    short, long, other = (ids for ids, _ in task.emitted)
    task.ack_batch(long)
    assert task.committed() == {}, "what is before them is open"
    task.ack_batch(np.concatenate((short[:3], short[4:])))
    assert task.committed() == {0: 3}
    task.ack_batch([int(short[3])])  # one that was sent again
    task.ack_batch(other)
    assert task.committed() == {0: 16, 1: 4}


@pytest.mark.parametrize("null", [False, True], ids=["too many values", "nulls"])
def test_batches_whose_dictionaries_do_not_go_together_leave_apart(null, monkeypatch):
    """An index of 8 bits has room for 127 values; a dictionary with a null is combined with no other one."""

    def categories(messages):
        words = [message.value().decode() for message in messages]
        words[-1] = None if null else words[-1]
        indices = pa.array(range(len(words)), pa.int8())
        return pa.record_batch({"word": pa.DictionaryArray.from_arrays(indices, pa.array(words))})

    monkeypatch.setattr(reading, "AT_ONCE", 100)
    task = Task(records(200), monkeypatch, {0: 200}, translate_batch=categories)
    task.next_tuple()
    words = [row["word"] for _, rows in task.emitted for row in rows]
    assert words == [None if null and offset % 100 == 99 else str(offset) for offset in range(200)]
    for ids, some in task.emitted:
        assert len(ids) == len(some) == 100
        task.ack_batch(ids)
    assert task.committed() == {0: 200}


def test_what_cannot_be_translated_leaves_on_its_own_stream_and_is_committed_with_the_batch_around_it(monkeypatch):
    waiting = [Message(0, b"0"), Message(1, b"none"), Message(2, b"2")]
    task = Task(waiting, monkeypatch, {0: 3}, translate_batch=by_kind, undecodable="emit")
    task.next_tuple()
    (place_and_offset, [odd]), (numbers, rows) = task.emitted
    assert odd[:5] == ("t", 0, 1, None, b"none")
    assert rows == [{"short": 0}, {"short": 2}]
    task.ack_batch(numbers)
    assert task.committed() == {0: 1}
    task.ack_batch(place_and_offset)
    assert task.committed() == {0: 3}


class SpeechlessError(Exception):
    def __str__(self):
        raise KeyError("no text")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("unknown customer \ud800"), "ValueError: unknown customer \\ud800"),
        (SpeechlessError(), "SpeechlessError: <SpeechlessError that has no text>"),
        (ValueError("x" * 1000), f"ValueError: {'x' * 500}... (1,000 characters)"),
    ],
    ids=["half a pair", "no text", "long"],
)
@pytest.mark.parametrize("undecodable", ["emit", "skip", "fail"])
def test_whatever_a_translation_raises_the_record_is_put_aside_with_words_that_can_be_sent(
    undecodable, error, said, monkeypatch
):
    def translate(message):
        raise error

    task = Task([Message(0)], monkeypatch, {0: 1}, translate=translate, undecodable=undecodable)
    if undecodable == "fail":
        with pytest.raises(UserError, match=re.escape(f"offset 0 of t[0] cannot be emitted: {said}")):
            task.next_tuple()
        return
    task.next_tuple()
    assert [rows for _, rows in task.emitted] == ([[("t", 0, 0, None, b"x", said)]] if undecodable == "emit" else [])


@pytest.mark.parametrize(
    ("size", "key", "kept"), [(3000, 500, (500, 3000)), (3500, 500, (500, None)), (100, 4000, (None, None))]
)
def test_the_row_of_a_record_that_is_put_aside_has_what_there_is_room_for(size, key, kept):
    """Beside the words, which an author may have made of the record."""
    message = Message(7, b"x" * size, key=b"k" * key)
    row = unfit_row(PartitionId("t", 0), message, ValueError("y" * 300), 4000)
    assert tuple(part and len(part) for part in row[3:5]) == kept
    assert len(RowCodec().encode([row])) <= 4000


@pytest.mark.parametrize("by_batch", [False, True])
@pytest.mark.parametrize("undecodable", ["emit", "skip"])
def test_a_record_is_too_large_by_its_key_too(undecodable, by_batch, monkeypatch):
    """Which is found before its row leaves: that would end the topology."""
    waiting = [Message(0), Message(1, b"x" * 3000, key=b"k" * 3000), Message(2, key=b"k")]
    whole = {"translate_batch": lambda found: pa.record_batch({"value": [m.value() for m in found]})}
    task = Task(waiting, monkeypatch, {0: 3}, undecodable=undecodable, **(whole if by_batch else {}))
    task._rows._most = 4000
    task.next_tuple()
    said = "ValueError: 6,000 bytes are more than topology.max.tuple.bytes, 4,000"
    aside = [row for _, rows in task.emitted for row in rows if len(row) == 6]
    assert aside == ([("t", 0, 1, b"k" * 3000, None, said)] if undecodable == "emit" else [])
    assert sum(len(rows) for _, rows in task.emitted) == 2 + len(aside)
    assert task._skipped.value == 1


@pytest.mark.parametrize(
    ("translate", "said"),
    [
        (lambda messages: pa.record_batch({"n": [1] * (len(messages) - 1)}), "made 2 rows of 3 records"),
        (lambda messages: pa.table({"n": [1] * len(messages)}), "made a value of type Table"),
        (lambda messages: None, "made a value of type NoneType"),
    ],
)  # fmt: skip
def test_translate_batch_makes_a_record_batch_with_a_row_for_each(monkeypatch, translate, said):
    task = Task(records(3), monkeypatch, {0: 3}, translate_batch=translate)
    with pytest.raises(UserError, match=said):
        task.next_tuple()


def test_one_that_has_finished_reads_what_an_update_brings_it(monkeypatch):
    every = [0, 1]
    [mine] = share([PartitionId("t", 0), PartitionId("t", 1)], 0, 2)
    other = PartitionId("t", 1 - mine.partition)
    waiting = records(3, partition=mine.partition)
    task = Task(waiting, monkeypatch, {0: 3, 1: 3}, end="latest")
    context = SimpleNamespace(this_component_id="lines", this_task_index=0, component_tasks=lambda _: every)
    task.update(context)
    task.look(0, 1)
    task.next_tuple()
    task.ack_batch([tup_id for ids, _ in task.emitted for tup_id in ids])
    task.look(0, 1)
    assert task.finished
    every, task.asked = [0], task.survey._replace(spans={mine: Span(0, 3)})
    task.update(context)
    assert not task.finished, "next_tuple is called again"
    task.look(0)
    assert not task.finished, "what was found for the former share says nothing of this one"
    waiting += records(3, partition=other.partition)
    task.look(0, 1)
    assert not task.finished, "the other partition is not read yet"
    task.next_tuple()
    read = [tup_id for ids, _ in task.emitted for tup_id in ids]
    assert sorted(read) == sorted((place, offset) for place in (mine, other) for offset in range(3))
    task.ack_batch(read)
    task.look(0, 1)
    assert task.finished
