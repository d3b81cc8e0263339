"""Rows into a topic where snapshots are taken: each once and in order, while the sink and the broker are killed."""

from __future__ import annotations

import pytest

from ardea.kafka import KafkaSink, Record
from ardea.testing import check_sink

BODY = """
import time

from ardea import Spout
from ardea.keyed import TaskState

class Numbers(Spout):
    outputs = ["number"]
    position = TaskState(default=0)

    def initialize(self, config, context):
        self.began, self.first = time.monotonic(), self.position

    def next_tuple(self):
        due = self.first + int((time.monotonic() - self.began) * 1000)
        for place in range(self.position, min(due, {most})):
            self.emit((place,))
            self.position = place + 1
        if self.position >= {most}:
            self.finish()

def record(tup):
    return Record(str(tup["number"]), headers=[("by", b"ardea")])

class Made(Topology):
    numbers = Numbers.spec()
    out = KafkaSink("{out}", record, control="{control}").spec(inputs=[numbers])
    config = {{
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 1.0,
    }}
"""
MOST = 6000


@pytest.fixture
def made(broker, running):
    out, control = broker.topic(), broker.topic(cleanup_policy="compact")
    with running(BODY.format(out=out, control=control, most=MOST)) as topology:
        yield topology, out


def some(broker, topology, out, least):
    topology.until(lambda: len(broker.read(out)) >= least, f"{least} records are written")


def exact(broker, out):
    values = [int(value) for value in broker.read(out)]
    assert values == list(range(MOST))
    assert {message.headers()[0] for message in broker.messages(out)} == {("by", b"ardea")}


def test_who_dies_changes_nothing(broker, made):
    topology, out = made
    for least, name in ((1, "numbers-0"), (300, "out-0")):
        some(broker, topology, out, least)
        topology.faults.kill(name)
    assert topology.finish().state == "SUCCEEDED"
    exact(broker, out)


@pytest.mark.thorough
def test_the_sink_passes_the_check(broker):
    """Also where a frozen task wakes: the broker refuses it."""
    out, control = broker.topic(), broker.topic(cleanup_policy="compact")
    sink = KafkaSink(out, control=control).spec(inputs=[]).cls
    rows = [Record(f"v{number}".encode(), f"k{number}".encode()).row for number in range(6)]

    def read():
        return [Record(message.value(), message.key()).row for message in broker.messages(out)]

    check_sink(sink, read, rows, config={"kafka.bootstrap.servers": broker.servers})


@pytest.mark.thorough
def test_a_broker_that_is_gone_for_a_while_ends_nothing(mortal, made):
    topology, out = made
    some(mortal, topology, out, 1)
    mortal.stop()
    topology.until(lambda: "it tries again" in logs(topology), "the sink says what is wrong", 60)
    mortal.start()
    assert topology.finish(90).state == "SUCCEEDED"
    exact(mortal, out)


def logs(topology):
    return "".join(path.read_text() for path in topology.folder.glob("container-*/logs/out-0.log*"))
