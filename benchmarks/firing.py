"""How fast a task's windows are seen once their time is over, and how long other rows wait meanwhile, by hand.

    python -m benchmarks.firing

A spout fills one minute of many keys and ends it by a row of a later one.  Before and after that it sends a row each
millisecond that is late, which the windows' task puts on ``late`` as soon as it comes to it; barriers of snapshots
stand in the same queue.  Prints windows a second between the first and the last that was seen, and how long late rows
took meanwhile, from their emit until they were at the next bolt.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea import Bolt, Grouping, Spout, Stream, Timestamps, Topology
from ardea.testing.kit import LocalTopology
from ardea.windows import Count, Tumbling, WindowBolt

EACH = 0.001
LATE = 1.0
PER_KEY = 1e-5
"""Seconds for each key, until all are in their windows and nothing waits any more."""
WITHIN = 300.0


class Keys(Spout):
    outputs = ("key", "at", "sent")
    timestamps = Timestamps("at")

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:  # noqa: ARG002
        self.left, self.due = config["firing.keys"], 0.0
        self.steps = iter((100.0, *[LATE] * 500, None, 300.0))

    def next_tuple(self) -> None:
        now = time.time()
        if now < self.due:
            return
        at = next(self.steps, LATE)
        if at is None:
            self.emit_many([(key, 200.0, 0.0) for key in range(self.left)])
            self.due = now + self.left * PER_KEY
        else:
            self.due = now + EACH
            self.emit((-1, at, now))


class Minutes(WindowBolt):
    outputs = ("key", "count", Stream(Keys.outputs, "late"))
    windows = Tumbling("1 min", on="at", fold=Count())

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:  # noqa: ARG002
        self.notes, self.emits = Path(config["firing.notes"]), config["firing.emits"]
        self.left, self.began = config["firing.keys"], 0.0

    def on_windows(self, window: Any, keys: Any, values: Any) -> None:  # noqa: ARG002
        if keys == [-1]:
            return
        self.began = self.began or time.time()
        if self.emits:
            self.emit_many(list(zip(keys, values, strict=True)))
        self.left -= len(keys)
        if self.left == 0:
            (self.notes / "windows").write_text(json.dumps([self.began, time.time()]))


class Results(Bolt):
    def process_batch(self, rows: Any) -> None:
        """All that there is to do."""


class Late(Bolt):
    """Notes when each row was sent, and how long it took."""

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:  # noqa: ARG002
        self.file = (Path(config["firing.notes"]) / "late").open("a")

    def process(self, tup: Any) -> None:
        self.file.write(f"{tup['sent']} {time.time() - tup['sent']}\n")
        self.file.flush()


class Firing(Topology):
    keys = Keys.spec()
    minutes = Minutes.spec(inputs={keys: Grouping.fields("key")})
    results = Results.spec(inputs=[minutes])
    late = Late.spec(inputs=[minutes["late"]])


def fired(keys: int, emits: bool, mode: str) -> tuple[float, list[float]]:
    """Windows a second, and the seconds of late rows that were sent while windows were seen."""
    with tempfile.TemporaryDirectory() as name:
        notes = Path(name) / "notes"
        notes.mkdir()
        config = {
            "firing.keys": keys,
            "firing.emits": emits,
            "firing.notes": str(notes),
            "topology.stmgrs": 1,
            "topology.reliability.mode": mode,
        }
        with LocalTopology(f"{__file__}:Firing", Path(name) / "t", containers=1, config=config) as topology:
            topology.until((notes / "windows").exists, "all windows were seen", WITHIN)
            began, ended = json.loads((notes / "windows").read_text())
            topology.until(lambda: time.time() > ended + 1, "rows that were late by then are noted", WITHIN)
        sent = [tuple(map(float, line.split())) for line in (notes / "late").read_text().splitlines()]
    return keys / (ended - began), [took for at, took in sent if began <= at <= ended]


def main() -> None:
    """Each way so often, in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=1_000_000, help="of the minute")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mode", default="ATLEAST_ONCE")
    given = parser.parse_args()
    for number in range(given.rounds):
        for emits in (False, True):
            rate, waits = fired(given.keys, emits, given.mode)
            how = "each emits a row" if emits else "nothing is emitted"
            print(
                f"{number + 1}, {how}: {rate:,.0f} windows a second; {len(waits)} late rows meanwhile:"
                f" median {statistics.median(waits):.3f} s, longest {max(waits):.3f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
