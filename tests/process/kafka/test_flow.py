"""Pauses, rebalances, columns, transactions and gaps: what a topic's reader has to bear with."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.process.kafka.conftest import HELD, lag, logs
from tests.sizes import size


@pytest.mark.thorough
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_paused_spout_keeps_its_partitions(broker, running, tmp_path):
    """With a session and a poll interval of 6 s; for ten minutes if ARDEA_SOAK is set."""
    source, out, gate = broker.topic(2), broker.topic(), tmp_path / "gate"
    broker.write(source, [b"%d" % number for number in range(1000)])
    gate.touch()
    with running(HELD.format(source=source, out=out, gate=gate)) as topology:
        topology.until(lambda: "reads" in logs(topology, "lines-0"), "it has begun")
        over = time.monotonic() + size(14, 600)
        topology.until(lambda: time.monotonic() > over, "the pause is over", 700)
        assert broker.read(out) == []
        assert lag(topology) == 1000
        gate.unlink()
        topology.until(lambda: len(broker.read(out)) >= 1000, "all is written")
        topology.until(lambda: sum(broker.committed("Made.lines", source).values()) == 1000, "all is committed")
        topology.until(lambda: lag(topology) == 0, "nothing lags behind")
        said = logs(topology, "lines-0")
    assert Counter(broker.read(out)) == Counter(b"%d" % number for number in range(1000))
    assert said.count("reads") == 2, "each partition was begun once"


@pytest.mark.thorough
def test_a_storm_of_restarts_and_new_partitions_passes_nothing_over(broker, running):
    source, out = broker.topic(2), broker.topic()
    body = f"""
    class Made(Topology):
        lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()], start="latest").spec(par=3)
        out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[lines])
        config = {{"topology.message.timeout.secs": 5}}
    """
    written = []
    with running(body) as topology:
        topology.until(lambda: "reads" in logs(topology, "lines-*"), "it has begun")
        for number in range(1, 4):
            values = [b"%d/%d" % (number, each) for each in range(500)]
            broker.grow(source, 2 + 2 * number)
            broker.write(source, values)
            written += values
            for task in ("lines-0", "lines-1", "lines-2"):
                topology.faults.kill(task)
        topology.until(lambda: set(broker.read(out)) == set(written), "all is written", 60)
        readers = {
            number: {task for task in range(3) if f"reads {source}[{number}]" in logs(topology, f"lines-{task}")}
            for number in range(8)
        }
    assert all(len(tasks) == 1 for tasks in readers.values()), readers


COLUMNS = """
import pyarrow as pa

from ardea.errors import FailedException

def columns(messages):
    return pa.record_batch({{"number": [int(message.value()) for message in messages]}})

class Picky(Bolt):
    outputs = ["number"]
    seen = set()

    def process(self, tup):
        number = tup["number"]
        if number == 77 or (number % 100 == 0 and number not in self.seen):
            self.seen.add(number)
            raise FailedException
        self.emit([number])

class Ignore(Bolt):
    def process(self, tup):
        pass

class Made(Topology):
    numbers = KafkaSpout("{source}", ["number"], translate_batch=columns, end="latest", undecodable="skip").spec()
    picky = Picky.spec(inputs=[numbers])
    out = KafkaSink("{out}", lambda tup: Record(str(tup["number"] + 1))).spec(inputs=[picky])
    dead = Ignore.spec(inputs=[numbers["__dead_letter"]])
    config = {{"topology.max.tuple.replays": 1}}
"""


def test_records_travel_as_columns(broker, running):
    """What fails once comes again, what fails twice is a dead letter, what cannot be translated is left out."""
    source, out = broker.topic(2), broker.topic()
    broker.write(source, [b"%d" % number for number in range(3000)] + [b"none"])
    with running(COLUMNS.format(source=source, out=out)) as topology:
        assert topology.finish().state == "SUCCEEDED"
        assert "ValueError: invalid literal for int()" in logs(topology, "numbers-0")
    assert Counter(broker.read(out)) == Counter(b"%d" % (number + 1) for number in range(3000) if number != 77)
    assert sum(broker.committed("Made.numbers", source).values()) == 3001


def test_aborted_transactions_are_not_read_and_their_markers_are_no_end(broker, running):
    source, out = broker.topic(), broker.topic()
    producer = broker.producer(**{"transactional.id": source})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(source, f"{number}")
        producer.flush(30)
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)
    body = f"""
    class Made(Topology):
        lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()], end="latest").spec()
        out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[lines])
    """
    with running(body) as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert broker.read(out) == [b"0", b"2"]
    assert broker.committed("Made.lines", source) == {0: 8}, "with the markers"


@pytest.mark.thorough
def test_a_compacted_topic_has_gaps_and_is_read_to_its_end(broker, running, deadline):
    settings = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01", "min_compaction_lag_ms": "0"}
    source, out = broker.topic(cleanup_policy="compact", **settings), broker.topic()
    for key in ("a", "b", "c"):
        broker.write(source, [f"{key}{number}" for number in range(5)], key=key)

    def compacted() -> bool:
        broker.write(source, ["tick"], key="tick")  # a segment ends when a record comes after its time
        return len([value for value in broker.read(source) if value != b"tick"]) == 3

    deadline(compacted, "it is compacted", seconds=60)
    before = broker.messages(source)
    with running(f"""
    class Made(Topology):
        lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()], end="latest").spec()
        out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[lines])
    """) as topology:
        assert topology.finish().state == "SUCCEEDED"
    assert {b"a4", b"b4", b"c4", b"tick"} == set(broker.read(out))
    assert broker.committed("Made.lines", source) == {0: before[-1].offset() + 1}
