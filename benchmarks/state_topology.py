"""What runs in the tasks of ``large-state``: a spout that writes all keys once, then a few of them again and again."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Topology, TopologyBuilder, TopologyContext
from benchmarks.topologies import FOLDER

SPOUT, TALLY = "keys", "tally"
KEYS = 1_000_000
CHANGED = 10_000
"""Keys that are written in an interval, each many times."""
IN_A_CALL = 100
INTERVAL = "topology.stateful.checkpoint.interval.secs"
EVERY, NEVER = 10.0, 1e6
"""Seconds from a snapshot to the next."""


class Note(msgspec.Struct, frozen=True):
    """Of the spout since all keys were there: rows, seconds, its longest gap; of the bolt: rows, and its pauses."""

    rows: int
    seconds: float = 0.0
    gap: float = 0.0
    pauses: list[float] = []
    expected: int = 0


class Keys(Spout):
    outputs = ("key",)
    position = TaskState(default=0)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.folder = Path(config[FOLDER])
        self.place = self.position
        self.began = self.last = self.gap = 0.0

    def next_tuple(self) -> None:
        now = time.monotonic()
        place, first = self.place, 0
        if place >= KEYS:
            if not self.began:
                self.began = self.last = now
                (self.folder / "loaded").touch()
            self.gap, self.last = max(self.gap, now - self.last), now
            first = int((now - self.began) / EVERY) * CHANGED
        for number in range(place, place + IN_A_CALL):
            self.emit(((first + number % CHANGED) % KEYS if place >= KEYS else number,))
        self.place = place + IN_A_CALL

    def snapshot(self, number: int) -> None:  # noqa: ARG002
        self.position = self.place

    def close(self) -> None:
        note = Note(self.place - KEYS, self.last - self.began, self.gap)
        (self.folder / SPOUT).write_bytes(msgspec.json.encode(note))


class Tally(Bolt):
    counts = KeyedState(default=0)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.folder = Path(config[FOLDER])
        self.rows, self.taken = 0, 0.0
        self.pauses: list[float] = []

    def process(self, tup: Any) -> None:
        if self.taken:
            self.pauses.append(time.monotonic() - self.taken)
            self.taken = 0.0
        self.rows += 1
        self.counts[tup.values[0]] += 1

    def snapshot(self, number: int) -> None:  # noqa: ARG002
        self.taken = time.monotonic()

    def close(self) -> None:
        counted = sum(self.counts[key] for key in range(KEYS))
        (self.folder / TALLY).write_bytes(msgspec.json.encode(Note(counted, pauses=self.pauses, expected=self.rows)))


def build(folder: str, every: float) -> type[Topology]:
    """One task each, with a snapshot so often."""
    topology = TopologyBuilder("benchmark-large-state")
    topology.set_config(
        {
            "topology.reliability.mode": "EFFECTIVELY_ONCE",
            INTERVAL: every,
            FOLDER: folder,
        }
    )
    keys = topology.add_spout(SPOUT, Keys)
    topology.add_bolt(TALLY, Tally, inputs={keys: Grouping.fields("key")})
    return topology.build()
