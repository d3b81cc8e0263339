"""Event time by the time of the records: windows close while a topic is read, and a silent partition holds nobody."""

from __future__ import annotations

import time
from collections import Counter

import pytest

SECONDS = """
from ardea import KeyedState, Timers, Timestamps
from ardea.kafka import record_time

class Seconds(Bolt):
    outputs = ["second", "count"]
    counts = KeyedState(default=0)
    timers = Timers(time="event")

    def process(self, tup):
        self.counts[tup["second"]] += 1
        self.timers.set(tup["second"], tup["second"] + 1)

    def on_timer(self, name, key, at):
        self.emit([key, self.counts.pop(key)])

class Made(Topology):
    lines = KafkaSpout(
        "{source}",
        ["second", "at"],
        lambda message: (int(record_time(message)), record_time(message)),
        timestamps=Timestamps("at", lateness="2 s", idle_after="1 s"),
    ).spec(par=2)
    seconds = Seconds.spec(inputs={{lines: Grouping.fields("second")}}, par=2)
    out = KafkaSink("{out}", lambda tup: Record(f"{{tup['second']}} {{tup['count']}}")).spec(inputs=[seconds])
    config = {{"topology.reliability.mode": "{mode}", "topology.stateful.checkpoint.interval.secs": 1}}
"""


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["ATLEAST_ONCE", "EFFECTIVELY_ONCE"])
def test_windows_close_while_one_partition_is_silent_and_have_all_of_the_others(broker, running, mode):
    source, out = broker.topic(3), broker.topic()
    began = int(time.time()) - 3600
    for second in range(8):
        for partition in (0, 1):
            broker.write(source, [b"x"] * 5, partition, at=began + second)
    expected = Counter(f"{began + second} 10".encode() for second in range(5))
    with running(SECONDS.format(source=source, out=out, mode=mode)) as topology:
        topology.until(lambda: len(broker.read(out)) >= 5, "those that are over are written")
        assert Counter(broker.read(out)) == expected
        broker.write(source, [b"x"], 2, at=began + 100)
        topology.until(lambda: len(broker.read(out)) >= 8, "the others, once all are idle and one is ahead")
    assert Counter(broker.read(out)) == expected + Counter(f"{began + second} 10".encode() for second in range(5, 8))
