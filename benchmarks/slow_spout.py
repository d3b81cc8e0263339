"""How long rows of slow calls are on their way: from the emit to the reader's ``process``, while the call goes on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ardea import Bolt, Spout, Topology, TopologyBuilder, TopologyContext
from benchmarks.harness import run_topology

FAST = 50_000
NOTES = "benchmark.folder"
SECONDS = "benchmark.seconds"
WARMUP = 1.0
"""Seconds after the reader's start: its machine starts other processes meanwhile."""
_SPARE = 60.0


@dataclass(frozen=True, slots=True)
class SlowResult:
    """Milliseconds from the emit to the arrival of the rows of one component, ``says`` how it emits them."""

    component: str
    says: str
    rows: int
    p50_ms: float
    p99_ms: float


class Slow(Spout):
    """Emits the time, for so many seconds; ``__doc__`` of a subclass says how."""

    outputs = ("at",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.over = time.monotonic() + config[SECONDS] + WARMUP

    def row(self, wait: float) -> None:
        self.emit((time.monotonic(),))
        time.sleep(wait)

    def next_tuple(self) -> None:
        self.call()
        if time.monotonic() > self.over:
            self.finish()

    def call(self) -> None:
        raise NotImplementedError


class Sleeps(Slow):
    """a row, then sleep(0.3), each call"""

    def call(self) -> None:
        self.row(0.3)


class SleepsLong(Slow):
    """a row, then sleep(1), each call"""

    def call(self) -> None:
        self.row(1.0)


class FastFirst(Slow):
    """50,000 fast rows, then a row and sleep(0.3) each call"""

    left = FAST

    def call(self) -> None:
        if self.left:
            self.left -= 1
            self.emit((None,))  # not measured: thousands of them wait for their reader
        else:
            self.row(0.3)


class Loops(Slow):
    """in one call: sleep(0.1), a row, again and again"""

    def call(self) -> None:
        while time.monotonic() < self.over:
            time.sleep(0.1)
            self.row(0.0)


def messages(until: float) -> Iterator[float]:
    while (now := time.monotonic()) < until:
        yield now
        time.sleep(0.05)


class Consumes(Slow):
    """in one call: for message in consumer, a row"""

    def call(self) -> None:
        for message in messages(self.over):
            self.emit((message,))


class Computes(Slow):
    """a row, then 0.3 s of Python, each call"""

    def call(self) -> None:
        end = time.monotonic() + 0.3
        self.row(0.0)
        while time.monotonic() < end:
            pass


class Passes(Bolt):
    """in a bolt: a row, then sleep(5)"""

    outputs = ("at",)

    def process(self, tup: Any) -> None:  # noqa: ARG002
        self.emit((time.monotonic(),))
        time.sleep(5.0)


class Arrives(Bolt):
    """Keeps how long each row took that was emitted once all was up, and writes it at the end."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.path = Path(config[NOTES]) / f"{context.this_component_id}.json"
        self.up = time.monotonic() + WARMUP
        self.took: list[float] = []

    def process(self, tup: Any) -> None:
        if tup[0] is not None and tup[0] > self.up:
            self.took.append(time.monotonic() - tup[0])

    def close(self) -> None:
        self.path.write_bytes(msgspec.json.encode(self.took))


SPOUTS = (Sleeps, SleepsLong, FastFirst, Loops, Consumes, Computes)


def topology(kind: type[Slow | Passes], notes: str, seconds: float) -> type[Topology]:
    """One of these and its reader; nothing else, as each is measured on a machine that has time."""
    builder = TopologyBuilder(f"slow-{kind.__name__.lower()}")
    if issubclass(kind, Bolt):
        emits = builder.add_bolt("passes", kind, inputs=[builder.add_spout("source", SleepsLong)])
    else:
        emits = builder.add_spout("source", kind)
    builder.add_bolt("arrives", Arrives, inputs=[emits])
    builder.set_config({NOTES: notes, SECONDS: seconds})
    return builder.build()


def measured(seconds: float) -> list[SlowResult]:
    """Each in turn."""
    return [_once(kind, seconds) for kind in (*SPOUTS, Passes)]


def _once(kind: type[Slow | Passes], seconds: float) -> SlowResult:
    def source(notes: Path) -> str:
        return (
            f"from benchmarks.slow_spout import {kind.__name__}, topology\n\n"
            f"TOPOLOGY = topology({kind.__name__}, {str(notes)!r}, {seconds!r})\n"
        )

    with run_topology(source) as running:
        running.finish(seconds * 5 + _SPARE, bool)
        took = msgspec.json.decode((running.notes / "arrives.json").read_bytes(), type=list[float])
    return result_of(kind, took)


def result_of(kind: type[Slow | Passes], took: list[float]) -> SlowResult:
    """The quantiles of what its rows took."""
    p50, p99 = np.percentile(took, (50, 99)) * 1000
    return SlowResult(kind.__name__, kind.__doc__ or "", len(took), float(p50), float(p99))
