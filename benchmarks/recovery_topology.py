"""What runs in the tasks of ``state-recovery``: a spout fills a state, and then sends rows in step with a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Topology, TopologyBuilder, TopologyContext
from benchmarks.topologies import FOLDER

SPOUT, STORE = "keys", "store"
VALUE_BYTES = 100
IN_A_CALL = 100
RATE = 1000.0
"""Rows a second, once all keys are there."""
EVERY = 5.0
"""Seconds from a snapshot to the next."""
TOTAL = "benchmark.keys"
RAM = 16 << 30
"""Bytes that the bolt may have: its supervisor would kill it beyond."""


class Begun(msgspec.Struct, frozen=True):
    """Of a process of the bolt: when it processed its first row (CLOCK_MONOTONIC), with how many keys."""

    at: float
    keys: int


class Filling(Spout):
    outputs = ("key",)
    position = TaskState(default=0)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.folder, self.total = Path(config[FOLDER]), config[TOTAL]
        self.place = self.position
        self.began = 0.0

    def next_tuple(self) -> None:
        place, due = self.place, self.place + IN_A_CALL
        if place >= self.total:
            now = time.monotonic()
            if not self.began:
                self.began, self.from_ = now, place
                (self.folder / "loaded").touch()
            due = self.from_ + int((now - self.began) * RATE)
        for number in range(place, due):
            self.emit((number % self.total,))
        self.place = max(place, due)

    def snapshot(self, number: int) -> None:  # noqa: ARG002
        self.position = self.place


class Store(Bolt):
    values = KeyedState(default=b"")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.folder = Path(config[FOLDER])
        self.begun = False

    def process(self, tup: Any) -> None:
        if not self.begun:
            self.begun = True
            self.note("first", time.monotonic())
        key = tup.values[0]
        self.values[key] = b"%0*d" % (VALUE_BYTES, key)

    def close(self) -> None:
        self.note("last", time.monotonic())

    def note(self, when: str, at: float) -> None:
        place = self.folder / f"{when}-{os.getpid()}"
        beside = place.with_suffix(".part")
        beside.write_bytes(msgspec.json.encode(Begun(at, len(self.values))))
        beside.rename(place)


def build(folder: str, keys: int) -> type[Topology]:
    """One task each."""
    topology = TopologyBuilder("benchmark-state-recovery")
    topology.set_config(
        {
            "topology.reliability.mode": "EFFECTIVELY_ONCE",
            "topology.stateful.checkpoint.interval.secs": EVERY,
            FOLDER: folder,
            "topology.component.rammap": {STORE: RAM},
            TOTAL: keys,
        }
    )
    spout = topology.add_spout(SPOUT, Filling)
    topology.add_bolt(STORE, Store, inputs={spout: Grouping.fields("key")})
    return topology.build()
