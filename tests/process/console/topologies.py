"""What the console is shown: work, a task that holds its spouts back, and text that would rather be markup."""

from __future__ import annotations

import time

from ardea import Bolt, Grouping, KeyedState, Spout, Topology

HOSTILE = "<img src=x onerror=document.title='taken'><b>bold</b> \x1b[31mred\x1b[0m \u202eturned\u202c \x00 \u200b"
"""HTML, colours of a terminal, text that turns the reading direction, and characters that nobody sees."""


class Numbers(Spout):
    outputs = ("number",)

    def initialize(self, config, context):
        self.number, self.pause = 0, config.get("test.pause", 0.0)

    def next_tuple(self):
        time.sleep(self.pause)
        self.number += 1
        self.emit((self.number,), tup_id=self.number)


class Double(Bolt):
    outputs = ("number",)

    def process(self, tup):
        self.emit((2 * tup["number"],))


class Slow(Bolt):
    """Two hundred rows a second, at most."""

    def process(self, tup):
        time.sleep(0.005)


class Shouts(Bolt):
    """Each hundredth row is a trouble; the first thing that it says is long."""

    def initialize(self, config, context):
        self.logger.warning("long: %s", "x" * 1_000_000)

    def process(self, tup):
        if tup["number"] % 100 == 0:
            self.logger.warning("%s", HOSTILE)
            raise ValueError(f"{HOSTILE} row {tup['number']}")


class Watched(Topology):
    numbers = Numbers.spec()
    double = Double.spec(inputs=[numbers])
    slow = Slow.spec(inputs={double: Grouping.SHUFFLE})
    shouts = Shouts.spec(inputs={double: Grouping.SHUFFLE})
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2, "test.pause": 0.001}


class Ticks(Numbers):
    """Two hundred rows a second, which nobody sends again."""

    replayable = False

    def next_tuple(self):
        time.sleep(0.005)
        self.number += 1
        self.emit((self.number % 100,))


class Count(Bolt):
    outputs = ("number", "count")
    counts = KeyedState(default=0)

    def process(self, tup):
        self.counts[tup["number"]] += 1
        self.emit((tup["number"], self.counts[tup["number"]]))


class Counted(Topology):
    """It remembers, so that it can be saved."""

    ticks = Ticks.spec()
    count = Count.spec(inputs={ticks: Grouping.fields("number")})
    config = {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 1,
        "heron.resources.instance.cpu": 0.1,
        "topology.container.cpu.padding": 0.2,
    }
