"""Bytewax's words in windows, with which ``make bench ARGS=windows`` alternates (docs/benchmarks.md).

    python3 -m venv build/bytewax && build/bytewax/bin/pip install bytewax==0.21.1
    build/bytewax/bin/python benchmarks/peers/bytewax_windows.py --seconds 5 --warmup 2

The same 10,000 words, windows of one second of event time with 100 rows of each, batches of 1,000 from the source.
"""

import argparse
import random
import string
import time
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as windowing
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import cluster_main

BATCH, LIST = 1000, 10_000
BEGIN = datetime(2023, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
chosen = random.Random(1)
WORDS = ["".join(chosen.choices(string.ascii_lowercase, k=6)) for _ in range(LIST)]


class Rows(StatelessSourcePartition):
    def __init__(self, warmup: float, seconds: float) -> None:
        self.place = self.before = 0
        self.begin = time.monotonic() + warmup
        self.end = self.begin + seconds

    def next_batch(self) -> list[tuple[str, int]]:
        now, place = time.monotonic(), self.place
        if now < self.begin:
            self.before = place
        elif now >= self.end:
            print(f"{(place - self.before) / (now - self.begin):,.0f} words/s counted", flush=True)
            raise StopIteration
        self.place += BATCH
        start = place % LIST
        return list(zip(WORDS[start : start + BATCH], range(place, place + BATCH), strict=True))


class Source(DynamicSource):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> Rows:  # noqa: ARG002
        return Rows(options.warmup, options.seconds)


class Dropped(StatelessSinkPartition):
    def write_batch(self, items: list) -> None:
        pass


class Nowhere(DynamicSink):
    def build(self, step_id: str, worker_index: int, worker_count: int) -> Dropped:  # noqa: ARG002
        return Dropped()


def stamp(row: tuple[str, int]) -> datetime:
    return BEGIN + row[1] * MICROSECOND


parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=float, default=5.0)
parser.add_argument("--warmup", type=float, default=2.0)
options = parser.parse_args()
flow = Dataflow("windows")
rows = op.input("rows", flow, Source())
clock = windowing.EventClock(stamp, wait_for_system_duration=timedelta(0))
windower = windowing.TumblingWindower(length=timedelta(seconds=1), align_to=BEGIN)
counts = windowing.count_window("count", rows, clock, windower, key=lambda row: row[0])
op.output("out", counts.down, Nowhere())
cluster_main(flow, [], 0, worker_count_per_proc=1)
