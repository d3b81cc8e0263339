"""One task takes all the CPU that it can get, another all the memory; the third does nothing."""

from __future__ import annotations

import hashlib
import os
import threading

from ardea import Bolt, Spout, Topology

THREADS = 16
BLOCK = bytes(1 << 20)
NEVER = threading.Event()


def burn():
    while True:
        hashlib.sha256(BLOCK)  # without the interpreter lock


class Hog(Spout):
    outputs = ["nothing"]

    def initialize(self, config, context):
        for _ in range(THREADS):
            threading.Thread(target=burn, daemon=True).start()

    def next_tuple(self):
        NEVER.wait(0.1)


class Leak(Spout):
    outputs = ["nothing"]

    def initialize(self, config, context):
        self.leaked = []

    def next_tuple(self):
        NEVER.wait(0.05)
        self.leaked.append(os.urandom(4 << 20))


class Idle(Bolt):
    def process(self, tup):
        pass


class Noisy(Topology):
    hog = Hog.spec(cpu=0.1)
    leak = Leak.spec(cpu=0.1)
    idle = Idle.spec(inputs=[hog, leak])

    config = {"heron.topology.master.replicas": 1}
