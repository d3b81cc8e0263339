"""Writing topics on real processes: a tuple is acked when its record is there, and not before."""

from __future__ import annotations

from collections import Counter

import pytest

BODY = """
from pathlib import Path

class Watch(Bolt):
    outputs = ["line"]
    def process(self, tup):
        self.emit([tup["line"]])
        if tup["line"] == b"last":
            Path("{seen}").touch()

class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()]).spec()
    watch = Watch.spec(inputs=[lines])
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(inputs=[watch], config={{"kafka.linger.ms": 4000}})
"""


FULL = """
class Made(Topology):
    lines = KafkaSpout("{source}", ["line"], lambda message: [message.value()], end="latest").spec()
    out = KafkaSink("{out}", lambda tup: Record(tup["line"])).spec(
        inputs=[lines], config={{"kafka.queue.buffering.max.messages": 10, "kafka.linger.ms": 50}}
    )
"""


@pytest.mark.thorough
def test_a_sink_whose_client_has_no_room_waits_for_it(broker, running):
    """For ten records where hundreds come at once."""
    source, out = broker.topic(2), broker.topic()
    values = [b"%d" % number for number in range(2000)]
    broker.write(source, values)
    with running(FULL.format(source=source, out=out)) as topology:
        outcome = topology.finish()
    assert (outcome.state, outcome.components["lines"].failed, outcome.errors) == ("SUCCEEDED", 0, [])
    assert Counter(broker.read(out)) == Counter(values)


def test_records_that_wait_in_a_sink_that_dies_are_written_by_its_next_life(broker, running, tmp_path):
    """They wait four seconds to be sent together; the sink dies meanwhile."""
    source, out, seen = broker.topic(), broker.topic(), tmp_path / "seen"
    values = [b"%d" % number for number in range(100)] + [b"last"]
    broker.write(source, values)
    with running(BODY.format(source=source, out=out, seen=seen)) as topology:
        topology.until(seen.exists, "the sink is given the last record")
        topology.faults.kill("out-0")
        topology.until(lambda: set(broker.read(out)) == set(values), "all is written", 40)
