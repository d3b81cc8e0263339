"""Numbers through two bolts into a file: whatever happens in between, what was read has to be written."""

from __future__ import annotations

import os
import time
from pathlib import Path

from ardea import Bolt, Grouping, Spout, Topology

KEPT_EVERY = 100
PAUSE = 0.1


def replace(file, text):
    new = file.with_suffix(f".{os.getpid()}")  # a container that was replaced may write the same file
    new.write_text(text)
    new.rename(file)


class Numbers(Spout):
    """Counts from where the acks without a gap end, which a file keeps over its lives; until the file ``enough``."""

    outputs = ["source", "number"]

    def initialize(self, config, context):
        self.index, out = context.this_task_index, Path(config["test.out"])
        self.file, self.end, self.enough = (out / name for name in (f"low-{self.index}", f"end-{self.index}", "enough"))
        self.low = self.kept = self.next = int(self.file.read_text()) if self.file.exists() else 0
        self.acked = set()

    def next_tuple(self):
        if self.enough.exists():
            if not self.end.exists():
                replace(self.end, str(self.next))
            # A new life that begins behind the end reads what is left of the numbers again.
            if self.next >= int(self.end.read_text()):
                self.finish()
                return
        self.emit([self.index, self.next], tup_id=self.next)
        self.next += 1

    def ack(self, tup_id):
        self.acked.add(tup_id)
        while self.low in self.acked:
            self.acked.remove(self.low)
            self.low += 1
        if self.low >= self.kept + KEPT_EVERY:
            self.kept = self.low
            replace(self.file, str(self.low))


class Pass(Bolt):
    """Leaves when it had nothing to do for longer than a pause, and when each of its lives began to work."""

    outputs = ["source", "number"]

    def initialize(self, config, context):
        name = f"pauses-{context.this_component_id}-{context.this_task_index}"
        self.file = (Path(config["test.out"]) / name).open("a", buffering=1)
        self.last = 0.0

    def process(self, tup):
        now = time.monotonic()
        if now - self.last > PAUSE:
            self.file.write(f"{self.last} {now}\n")
        self.last = now
        self.emit(list(tup.values))

    def close(self):
        self.file.close()


class Written(Bolt):
    """Slow, so that the spouts have as many open trees as they may; a row is in the file before it is acked."""

    def initialize(self, config, context):
        self.file = (Path(config["test.out"]) / "arrived").open("a", buffering=1)
        self.rows = 0

    def process(self, tup):
        self.file.write(f"{tup[0]} {tup[1]}\n")
        self.rows += 1
        if not self.rows % 10:
            time.sleep(0.005)

    def close(self):
        self.file.close()


class Counted(Topology):
    """Two containers; each kind of way between them is used."""

    numbers = Numbers.spec(par=2)
    first = Pass.spec(inputs=[numbers], par=2)
    second = Pass.spec(inputs={first: Grouping.fields("number")}, par=2)
    written = Written.spec(inputs={second: Grouping.GLOBAL})

    config = {
        "topology.max.spout.pending": 500,
        "topology.message.timeout.secs": 20,
        "heron.metrics.export.interval.sec": 0.2,
    }
