"""What a bolt costs while a row or a process of its component is blamed (docs/snapshots.md, poison), by hand.

    python -m benchmarks.blamed

Prints rows a second of ``words -> count`` on real processes of this machine: plain, with each tuple noted since a
process has died, and with each row hashed since one is skipped.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Topology
from ardea.testing.kit import LocalTopology

SECONDS = 8.0
EACH = 10_000
"""Rows between two notes of the time."""
ALONE = "a row that is there once"


class Words(Spout):
    outputs = ("word",)
    position = TaskState(default=0)

    def next_tuple(self) -> None:
        for place in range(self.position, self.position + 100):
            self.emit((ALONE if place == 1000 else f"w{place % 997}",))
        self.position += 100


class Count(Bolt):
    counts = KeyedState(default=0)

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:  # noqa: ARG002
        self.raises, self.rows = config["blamed.raises"], 0
        self.notes = Path(config["blamed.notes"])

    def process(self, tup: Any) -> None:
        if self.raises and tup[0] == ALONE:
            raise ValueError(ALONE)
        self.counts[tup[0]] += 1
        self.rows += 1
        if not self.rows % EACH:
            with self.notes.open("a") as file:
                file.write(f"{time.monotonic()}\n")


class Blamed(Topology):
    words = Words.spec()
    count = Count.spec(inputs={words: Grouping.fields("word")})
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.checkpoint.interval.secs": 1e6}


def rate(topology: LocalTopology, notes: Path) -> float:
    """Rows a second, the median between two notes; the first second does not count."""
    notes.write_text("")
    topology.until(lambda: len(notes.read_text().splitlines()) > 1, "rows are counted")
    began = time.monotonic()
    topology.until(lambda: time.monotonic() > began + SECONDS, "it has run for long enough")
    times = [each for each in map(float, notes.read_text().split()) if each > began + 1.0]
    return statistics.median(EACH / (later - former) for former, later in itertools.pairwise(times))


def main() -> None:
    """Two topologies, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        for raises in (False, True):
            notes = Path(name) / f"notes-{raises}"
            config = {"blamed.raises": raises, "blamed.notes": str(notes), "topology.stmgrs": 1}
            with LocalTopology(
                f"{__file__}:Blamed", Path(name) / f"t-{raises}", containers=1, config=config
            ) as topology:
                if raises:
                    print(f"hashed {rate(topology, notes):>12,.0f} rows/s")
                else:
                    print(f"plain  {rate(topology, notes):>12,.0f} rows/s")
                    topology.faults.kill("count-0")
                    print(f"noted  {rate(topology, notes):>12,.0f} rows/s")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
