"""What a Kafka spout's watermark follows from: its partitions, which come and go, and are read to their ends or not."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from ardea.errors import TopologyError
from ardea.kafka import KafkaSpout, record_time
from ardea.kafka.marks import PartitionId
from ardea.kafka.reading import REFRESH
from ardea.testing import CollectBolt
from ardea.topology import Topology
from ardea.watermarks import NEVER, SourceTime, StampCounts, Timestamps
from tests.unit.kafka.test_reading import Message, Task

P = [PartitionId("t", number) for number in range(4)]


def end(offset, partition=0):
    """What the client says at the end of a partition."""
    return Message(offset, partition=partition, error=SimpleNamespace(code=lambda: 1))


def value(message):
    return [int(message.value())]


def stamped(*stamps, partition=0, first=0):
    return [Message(first + place, b"%d" % stamp, partition) for place, stamp in enumerate(stamps)]


def task(messages, monkeypatch, ends, translate=value, idle_after=None, **more):
    time = SourceTime(Timestamps("at", lateness=1.0, idle_after=idle_after), lambda: 1000.0, StampCounts())
    time.unreadable("")
    monkeypatch.setattr(Task, "_time", time, raising=False)
    made = Task(messages, monkeypatch, ends, translate=translate, **more)
    made.next_tuple()
    return made, time


def test_the_watermark_is_that_of_the_slowest_partition(monkeypatch):
    _, time = task([*stamped(10, 20), *stamped(5, 9, partition=1)], monkeypatch, {0: 2, 1: 2})
    assert time.watermark == 8.0


def test_a_partition_without_a_record_holds_it(monkeypatch):
    _, time = task(stamped(10, 20), monkeypatch, {0: 2, 1: 0})
    assert time.watermark == NEVER


@pytest.mark.parametrize("columns", [False, True])
def test_records_that_are_left_out_have_no_stamp_and_batches_have_theirs(monkeypatch, columns):
    def batch(messages):
        return pa.record_batch({"at": [int(message.value()) for message in messages]})

    translate = {"translate": lambda m: None if m.value() == b"30" else value(m)}
    if columns:
        translate = {"translate_batch": batch}
    _, time = task(stamped(10, 30, 20), monkeypatch, {0: 3}, **translate)
    assert (time.watermark, time.counts.none) == (29.0 if columns else 19.0, 0)


def test_what_was_read_to_its_end_holds_nobody_up(monkeypatch):
    bounds = {P[0]: 2, P[1]: 5}
    _, time = task([*stamped(5, 9), *stamped(70, partition=1)], monkeypatch, {0: 2, 1: 5}, end=bounds)
    assert time.watermark == 69.0


def test_partitions_come_and_go_with_the_number_of_tasks(monkeypatch):
    """A new one holds the watermark, and one that is another task's does not."""
    messages = [*stamped(10, 20), *stamped(5, 9, partition=1)]
    made, time = task(messages, monkeypatch, {0: 9, 1: 9, 2: 9})
    assert time.watermark == NEVER
    mine = made._assignment.needs(P[:3])

    def share(tasks):
        context = SimpleNamespace(
            this_component_id="lines", this_task_index=made._assignment.index, component_tasks=lambda _: [1] * tasks
        )
        made.update(context)
        made.look(0, 1, 2)

    share(3)
    [left] = made._assignment.needs(P[:3])
    assert left in mine
    assert time.watermark == {P[0]: 19.0, P[1]: 8.0, P[2]: NEVER}[left]
    before = time.watermark
    share(1)
    messages += stamped(50, partition=left.partition, first=2)
    made.next_tuple()
    assert time.watermark == before, "it waits for those that have come back"


def test_one_that_is_not_there_any_more_is_waited_for_no_more(monkeypatch):
    messages = [*stamped(10, 20), *stamped(5, partition=1)]
    made, time = task(messages, monkeypatch, {0: 2, 1: 1}, deleted="earliest")
    assert time.watermark == 4.0
    made.look(0)
    made.look(0)
    assert time.watermark == 19.0


# --- idleness ---------------------------------------------------------------------------------------------------------


def test_only_what_was_read_to_its_end_is_idle(monkeypatch):
    messages = [*stamped(10, 20), *stamped(5, partition=1)]
    made, time = task(messages, monkeypatch, {0: 9, 1: 9}, idle_after=5.0)
    time.waited(100.0)
    assert time.watermark == 4.0, "the broker has more of both"
    messages += [end(1, partition=1)]
    made.next_tuple()
    time.waited(100.0)  # the turn in which that was found out, however long it was
    time.waited(4.0)
    assert time.watermark == 4.0
    time.waited(1.0)
    assert time.watermark == 19.0
    messages += stamped(7, partition=1, first=1)
    made.next_tuple()
    time.waited(100.0)
    assert not time.idle


def test_one_of_which_nothing_was_read_yet_is_idle_only_if_there_is_nothing(monkeypatch):
    _, time = task([], monkeypatch, {0: 9}, idle_after=5.0)
    time.waited(100.0)
    assert not time.idle
    _, time = task([], monkeypatch, {0: 0}, idle_after=5.0)
    time.waited(1.0)
    time.waited(5.0)
    assert time.idle


def test_where_no_broker_answers_nothing_is_idle_until_one_does(monkeypatch):
    messages = [*stamped(10, 20), end(2), *stamped(5, partition=1), end(1, partition=1)]
    made, time = task(messages, monkeypatch, {0: 2, 1: 1}, idle_after=5.0)
    answer, made._surveyor.answer = made._surveyor.answer, lambda: None
    made.connection.troubled = True
    made.now += 1.0
    made.idle()
    time.waited(100.0)
    assert not time.idle
    made.connection.troubled, made._surveyor.answer = False, answer
    made.now += REFRESH
    made.idle()
    time.waited(1.0)
    time.waited(5.0)
    assert time.idle, "a survey has found nothing behind what was read"


def test_a_survey_that_fails_says_that_too(monkeypatch):
    made, time = task([*stamped(10), end(1)], monkeypatch, {0: 1}, idle_after=5.0)

    def unanswered():
        raise ValueError(SimpleNamespace(str=lambda: "timed out"))

    made._surveyor.answer = unanswered
    made.connection.refuse = lambda _: None
    made.now += REFRESH
    made.idle()
    time.waited(100.0)
    assert not time.idle


def test_partitions_that_are_not_found_yet_are_waited_for(monkeypatch):
    made, time = task([], monkeypatch, {}, idle_after=5.0)
    made.survey = made.survey._replace(stored={})
    time.waited(100.0)
    assert not time.idle


# --- what an author says ----------------------------------------------------------------------------------------------


def test_the_time_that_a_record_carries_itself():
    assert record_time(SimpleNamespace(timestamp=lambda: (1, 1500))) == 1.5
    assert record_time(SimpleNamespace(timestamp=lambda: (0, -1))) is None


def plan(**options):
    spout = KafkaSpout("t", ["value", "at"], **options)

    class Stamped(Topology):
        lines = spout.spec()
        kept = CollectBolt.spec(inputs=[lines])

    return Stamped.plan({})


def test_timestamps_name_one_of_the_fields():
    assert plan(timestamps=Timestamps("at"))["lines"].cls.stamped == 1
    with pytest.raises(TopologyError, match="stand in the field 'when', which none of its streams has"):
        plan(timestamps=Timestamps("when"))
