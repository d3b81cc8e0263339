"""Works until somebody makes the file ``/tmp/broken`` in the bolt's container; from then on each life of it dies."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ardea import Bolt, Spout, Topology

BROKEN = Path("/tmp/broken")


class Ticks(Spout):
    outputs = ["tick"]

    def initialize(self, config, context):
        self.tick = 0

    def next_tuple(self):
        time.sleep(0.1)
        self.tick += 1
        self.emit([self.tick], tup_id=self.tick)


class Fragile(Bolt):
    def initialize(self, config, context):
        if BROKEN.exists() or config["fragile.from.the.start"]:
            raise ValueError("no such table\nfor the second line there is no room")

    def process(self, tup):
        if BROKEN.exists():
            os.kill(os.getpid(), signal.SIGSEGV)


class Brittle(Topology):
    ticks = Ticks.spec()
    fragile = Fragile.spec(inputs=[ticks])
    config = {"fragile.from.the.start": False}
