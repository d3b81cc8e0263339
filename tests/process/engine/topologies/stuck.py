"""A bolt whose tasks wait for ever, loop for ever, die, or just work, once the file ``now`` is there."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from ardea import Bolt, Spout, Topology


class Endless(Spout):
    outputs = ["number"]

    def initialize(self, config, context):
        self.number = 0

    def next_tuple(self):
        self.number += 1
        self.emit([self.number], tup_id=self.number)


class Behaves(Bolt):
    def initialize(self, config, context):
        self.now, self.index = Path(config["test.out"]) / "now", context.this_task_index
        self.once = Path(config["test.out"]) / "aborted"

    def process(self, tup):
        if self.now.exists():
            (self.wait_for_ever, self.loop_for_ever, self.die_once, bool)[self.index]()

    def wait_for_ever(self):
        threading.Event().wait()

    def loop_for_ever(self):
        while True:
            pass

    def die_once(self):
        if not self.once.exists():
            self.once.touch()
            os.abort()


class Stuck(Topology):
    numbers = Endless.spec()
    behaves = Behaves.spec(inputs=[numbers], par=4)
    config = {"topology.max.spout.pending": 20, "topology.message.timeout.secs": 3}
