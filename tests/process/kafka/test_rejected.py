"""Records that a real broker refuses for what they are, and a former life that wakes in its transaction."""

from __future__ import annotations

import pytest

from ardea import rejections
from ardea.errors import ArdeaError
from ardea.kafka import KafkaSink, Record
from ardea.kafka.transactions import NotWrittenError
from ardea.rejections import RETRIES, RejectedError
from ardea.sinks import Mark, keep_rows
from ardea.testing.sinks import _context

LARGE = b"x" * 1_200_000
MEDIUM = b"y" * 60_000


@pytest.fixture
def made(broker):
    """Makes sinks as the engine does."""
    sinks = []

    def make(topic, control, config=(), **options):
        sink = KafkaSink(topic, control=control, **options).spec(inputs=[]).cls()
        keep_rows(sink, lambda rows: None)
        sink.initialize({"kafka.bootstrap.servers": broker.servers, **dict(config)}, _context({}))
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        sink.disconnect()


@pytest.fixture
def control(broker):
    return broker.topic(cleanup_policy="compact")


def mark(number):
    return Mark("t-1", "out", 0, number)


def rows(*values):
    return [Record(value, b"k%d" % place).row for place, value in enumerate(values)]


def said_of(message):
    return {name: value for name, value in message.headers() if name.startswith("ardea-")}


@pytest.mark.thorough
def test_refused_records_are_dead_letters_and_all_others_are_there(broker, made, control):
    """One by the client, for its size; two by the broker, which takes 50 kB there."""
    out, letters = broker.topic(max_message_bytes="50000"), broker.topic()
    sink = made(out, control, rejected="dead-letter", dead_letters=letters)
    interval = rows(b"0", MEDIUM, b"2", LARGE, b"4", MEDIUM, b"6", *[b"%d" % number for number in range(7, 60)])
    for _ in range(RETRIES):
        with pytest.raises(ArdeaError) as raised:
            sink.commit(mark(1), interval)
    assert isinstance(raised.value, RejectedError)
    assert f"topic {out} refuses the row (b'yyy" in str(raised.value) or "(b'xxx" in str(raised.value)
    assert broker.read(out, letters) == []
    sink.commit(mark(1), interval)
    good = [value for value, *_ in interval if value not in (MEDIUM, LARGE)]
    assert broker.read(out) == good
    found = broker.messages(letters)
    assert [message.key() for message in found] == [b"k1", b"k3", b"k3", b"k3", b"k5"]
    assert b"".join(message.value() for message in found) == MEDIUM + LARGE + MEDIUM
    assert [said_of(message)["ardea-part"] for message in found] == [b"1/1", b"1/3", b"2/3", b"3/3", b"1/1"]
    assert said_of(found[0])["ardea-topic"] == out.encode()
    assert said_of(found[0])["ardea-interval"] == b"t-1/out/0/1"
    assert b"larger than" in said_of(found[0])["ardea-error"] or b"too large" in said_of(found[0])["ardea-error"]
    assert (sink._delivered.value, sink._set_aside.value) == (len(good), 3)
    again = made(out, control, rejected="dead-letter", dead_letters=letters)
    again.commit(mark(1), interval)
    assert len(broker.messages(letters)) == 5, "once each"
    again.commit(mark(2), rows(b"next"))
    assert broker.read(out)[-1] == b"next"


def test_a_record_without_a_key_is_refused_by_a_compacted_topic(broker, made, control, monkeypatch):
    monkeypatch.setattr(rejections, "RETRIES", 1)
    out, letters = broker.topic(cleanup_policy="compact"), broker.topic()
    sink = made(out, control, rejected="dead-letter", dead_letters=letters)
    interval = [Record(b"%d" % number, None if number == 5 else b"k%d" % number).row for number in range(9)]
    with pytest.raises(ArdeaError):
        sink.commit(mark(1), interval)
    sink.commit(mark(1), interval)
    assert broker.read(out) == [b"%d" % number for number in range(9) if number != 5]
    assert broker.read(letters) == [b"5"]


def test_records_that_the_client_takes_for_none_are_dead_letters_with_their_parts_as_text(
    broker, made, control, monkeypatch
):
    monkeypatch.setattr(rejections, "RETRIES", 1)
    out, letters = broker.topic(), broker.topic()
    sink = made(out, control, rejected="dead-letter", dead_letters=letters)
    odd = [
        Record(5, 7),
        Record("a \udcff", b"k"),
        Record(b"b", headers=[("a", 5), ("b", b"x")]),
        Record(b"c", headers={"abc": b"1"}),
        Record(b"d", timestamp_ms="soon"),
        Record(b"e", headers=[("\ud800", b"x")]),
        Record(b"f", partition=1 << 40),
    ]
    interval = [row for number, record in enumerate(odd) for row in (record.row, *rows(b"good %d" % number))]
    with pytest.raises(RejectedError, match=f"topic {out} refuses the row \\(5, 7"):
        sink.commit(mark(1), interval)
    sink.commit(mark(1), interval)
    assert broker.read(out) == [b"good %d" % number for number in range(len(odd))]
    found = broker.messages(letters)
    assert [message.value() for message in found] == [b"5", b"a \\udcff", b"b", b"c", b"d", b"e", b"f"]
    assert [message.key() for message in found] == [b"7", b"k", None, None, None, None, None]
    assert found[2].headers()[:2] == [("a", b"5"), ("b", b"x")]
    assert found[3].headers()[0] == ("ardea-headers", b"{'abc': b'1'}")
    assert found[5].headers()[0] == ("\\ud800", b"x")


@pytest.mark.thorough
def test_without_dead_letters_it_waits_until_the_topic_takes_the_record(broker, made, control):
    out = broker.topic(max_message_bytes="50000")
    sink, interval = made(out, control), rows(b"0", MEDIUM, b"2")
    for _ in range(RETRIES + 2):
        with pytest.raises(ArdeaError) as raised:
            sink.commit(mark(1), interval)
    assert isinstance(raised.value, RejectedError)
    broker.configure(out, "max.message.bytes", "100000")
    sink.commit(mark(1), interval)
    assert broker.read(out) == [b"0", MEDIUM, b"2"]


@pytest.mark.thorough
def test_dead_letters_that_have_no_topic_keep_the_interval(broker, made, control):
    out = broker.topic(max_message_bytes="50000")
    config = {"kafka.allow.auto.create.topics": False, "kafka.topic.metadata.propagation.max.ms": 500}
    sink = made(out, control, config, rejected="dead-letter", dead_letters=f"{out}/no")
    for _ in range(RETRIES + 2):
        with pytest.raises(ArdeaError):
            sink.commit(mark(1), rows(b"0", MEDIUM))
    assert broker.read(out) == []


def test_a_former_life_that_wakes_in_its_transaction_when_its_successor_has_committed_is_refused(broker, made, control):
    out = broker.topic()
    zombie, successor = made(out, control), made(out, control)
    zombie.commit(mark(1), rows(b"1"))

    def waking():
        yield rows(b"2")[0]
        successor.commit(mark(2), rows(b"2", b"3"))
        yield rows(b"3")[0]

    with pytest.raises(NotWrittenError, match=r"(?i)fenced|epoch"):
        zombie.commit(mark(2), waking())
    assert broker.read(out) == [b"1", b"2", b"3"]
