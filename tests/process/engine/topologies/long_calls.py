"""Spouts and a bolt whose calls take long, each in its own way; the sink says how long their rows were on the way."""

from __future__ import annotations

import time

from leaving import LeavingBolt

from ardea import Bolt, Spout, Topology

WAIT = 2.4
"""Seconds of each pause."""
CALLS = 2


class Rows(Spout):
    """A row holds when it was emitted."""

    outputs = ["who", "at"]
    calls = 0

    def next_tuple(self):
        self.calls += 1
        self.call()
        if self.calls == CALLS:
            self.finish()

    def send(self):
        self.sent = getattr(self, "sent", 0) + 1
        self.emit([type(self).__name__, time.monotonic()], tup_id=self.sent)


class Sleeps(Rows):
    """After each row."""

    def call(self):
        self.send()
        time.sleep(WAIT)


class FastFirst(Rows):
    """Many rows, and then slow ones."""

    def call(self):
        if self.calls > 1:
            self.send()
            time.sleep(WAIT)
            self.send()

    def next_tuple(self):
        if getattr(self, "sent", 0) < 2000:
            self.send()
        else:
            super().next_tuple()


class Consumes(Rows):
    """``for message in consumer``: the call does not return between two rows."""

    def call(self):
        for _ in range(3):
            self.send()
            time.sleep(WAIT / 3)


class Computes(Rows):
    """In Python, which keeps other threads waiting."""

    def call(self):
        self.send()
        end = time.monotonic() + WAIT
        while time.monotonic() < end:
            sum(range(100))


class Passes(Bolt):
    """Emits, and only then sleeps."""

    outputs = ["who", "at"]

    def process(self, tup):
        self.emit(["Passes", time.monotonic()])
        if tup["who"] == "Sleeps":
            time.sleep(WAIT)


class Arrives(LeavingBolt):
    """The longest way of a row, and how many came, for each sender."""

    def begin(self):
        self.ways, self.count = {}, {}

    def process(self, tup):
        who, at = tup.values
        self.ways[who] = max(self.ways.get(who, 0.0), time.monotonic() - at)
        self.count[who] = self.count.get(who, 0) + 1

    def close(self):
        self.leave([self.ways, self.count])


class LongCalls(Topology):
    sleeps, fast, consumes, computes = Sleeps.spec(), FastFirst.spec(), Consumes.spec(), Computes.spec()
    passes = Passes.spec(inputs=[sleeps])
    arrives = Arrives.spec(inputs=[sleeps, fast, consumes, computes, passes])
