"""Spouts and a bolt whose calls go on until the sink has got the rows that they have emitted, each in its own way."""

from __future__ import annotations

import time

from leaving import LeavingBolt, LeavingSpout

from ardea import Topology

PATIENCE = 20.0
"""Seconds; a task that has waited so long for a row says so, and waits for no other one."""
CALLS = 2


class Emits:
    """A row holds its number."""

    outputs = ["who", "number"]
    sent = 0
    late = False

    def send(self):
        self.sent += 1
        self.emit([type(self).__name__, self.sent], tup_id=self.sent)

    def hold(self):
        """Until the last row has come."""
        end = time.monotonic() + PATIENCE
        row = f"{type(self).__name__}-{self.sent}"
        while not (self.late or self.flag(row)):
            self.late = time.monotonic() > end
            if self.late:
                (self.out / f"late-{row}").touch()
            self.work()

    def work(self):
        time.sleep(0.05)


class Rows(Emits, LeavingSpout):
    calls = 0

    def next_tuple(self):
        self.calls += 1
        self.call()
        if self.calls == CALLS:
            self.finish()


class Sleeps(Rows):
    """After each row."""

    def call(self):
        self.send()
        self.hold()


class FastFirst(Rows):
    """Many rows, and then slow ones."""

    def call(self):
        if self.calls > 1:
            self.send()
            self.hold()
            self.send()

    def next_tuple(self):
        if self.sent < 2000:
            self.send()
        else:
            super().next_tuple()


class Consumes(Rows):
    """``for message in consumer``: the call does not return between two rows."""

    def call(self):
        for _ in range(3):
            self.send()
            self.hold()


class Computes(Rows):
    """In Python, which keeps other threads waiting."""

    def call(self):
        self.send()
        self.hold()

    def work(self):
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            sum(range(100))


class Passes(Emits, LeavingBolt):
    """Emits, and only then waits."""

    def process(self, tup):
        self.sent += 1
        self.emit(["Passes", self.sent])
        if tup["who"] == "Sleeps":
            self.hold()


class Arrives(LeavingBolt):
    """Says of each row that it has come, and in the end how many there were of each sender."""

    def begin(self):
        self.count = {}

    def process(self, tup):
        who, number = tup.values
        (self.out / f"{who}-{number}").touch()
        self.count[who] = self.count.get(who, 0) + 1

    def close(self):
        self.leave(self.count)


class LongCalls(Topology):
    sleeps, fast, consumes, computes = Sleeps.spec(), FastFirst.spec(), Consumes.spec(), Computes.spec()
    passes = Passes.spec(inputs=[sleeps])
    arrives = Arrives.spec(inputs=[sleeps, fast, consumes, computes, passes])
