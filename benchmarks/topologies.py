"""What is measured: words counted, sentences split and counted, and a spout held to a rate."""

from __future__ import annotations

import random
import string
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import msgspec

from ardea import (
    Bolt,
    Grouping,
    KeyedState,
    Spout,
    TaskState,
    Timestamps,
    Topology,
    TopologyBuilder,
    TopologyContext,
)
from ardea.windows import Count as Counted
from ardea.windows import Tumbling, Window, WindowBolt

Workload = Literal["words", "sentences", "paced", "windows"]

FOLDER = "benchmark.folder"  # where tasks write what they counted
RATE = "benchmark.rate"  # tuples a second, of all spout tasks together
BULK = "benchmark.bulk"  # whether sentences are split by emit_many
WARMUP = "benchmark.warmup"  # seconds after which a paced spout records latencies

SAMPLE_EVERY = 0.25
LIST = 10_000
WORDS_IN_SENTENCE = 10
PACED_BURST = 1000
BINS_PER_SECOND = 20_000  # latencies are kept as counts of 0.05 ms, so that memory does not grow with time
LAST_BIN = BINS_PER_SECOND  # a second or more


class Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task has counted by ``at`` (seconds, CLOCK_MONOTONIC, the same in all processes).

    Attributes:
        tuples: a spout's acked tuples, a counting bolt's tuples.
        over: written by ``close()``: nothing comes after it.
        latencies: tuples by complete latency, in bins of 1 / BINS_PER_SECOND; a paced spout's last line only.
    """

    at: float
    tuples: int
    over: bool = False
    latencies: dict[int, int] = {}


class Notebook:
    """One task's lines, in a file of its own."""

    def __init__(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        name = f"{context.this_component_id}-{context.this_task_id}.jsonl"
        self._path = Path(config[FOLDER]) / name
        self._over = threading.Event()
        self._sampler: threading.Thread | None = None

    def write(self, line: Line) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(line) + b"\n")

    def sample(self, tuples: Callable[[], int]) -> None:
        """Writes a line now and then from a thread of its own, so that the spout's calls hold nothing but the work."""

        def run() -> None:
            while not self._over.wait(SAMPLE_EVERY):
                self.write(Line(time.monotonic(), tuples()))

        self.write(Line(time.monotonic(), tuples()))
        self._sampler = threading.Thread(target=run, name="sampler", daemon=True)
        self._sampler.start()

    def close(self, tuples: int, latencies: dict[int, int] | None = None) -> None:
        self._over.set()
        if self._sampler is not None:
            self._sampler.join()
        self.write(Line(time.monotonic(), tuples, over=True, latencies=latencies or {}))


def word_list() -> list[str]:
    """The same 10,000 words in every run."""
    chosen = random.Random(1)
    return ["".join(chosen.choices(string.ascii_lowercase, k=6)) for _ in range(LIST)]


class Words(Spout):
    outputs = ("word",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.rows = self.make_rows()
        self.i = self.acked = 0
        self.notebook = Notebook(config, context)
        self.notebook.sample(lambda: self.done)

    @property
    def done(self) -> int:
        return self.acked

    def make_rows(self) -> list[str]:
        return word_list()

    def next_tuple(self) -> None:
        self.i = i = self.i + 1
        self.emit((self.rows[i % LIST],), i)

    def ack(self, tup_id: Any) -> None:  # noqa: ARG002
        self.acked += 1

    def close(self) -> None:
        self.notebook.close(self.done)


class RememberedWords(Words):
    """In a mode that takes snapshots nothing is acked: what was emitted counts, and is its position."""

    position = TaskState(default=0)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.i = self.position

    @property
    def done(self) -> int:
        return self.i

    def snapshot(self, number: int) -> None:  # noqa: ARG002
        self.position = self.i


class Sentences(Words):
    outputs = ("sentence",)

    def make_rows(self) -> list[str]:
        words = word_list()
        return [" ".join(words[(i * 7 + j) % LIST] for j in range(WORDS_IN_SENTENCE)) for i in range(LIST)]


class Paced(Words):
    """Emits what is due; a tuple's id is the time of its emit.  A rate of 0 emits nothing."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.clock = time.monotonic
        self.rate = config[RATE] / len(context.component_tasks(context.this_component_id))
        self.began = self.clock()
        self.recorded_from = self.began + config[WARMUP]
        self.bins = [0] * (LAST_BIN + 1)

    def next_tuple(self) -> None:
        now = self.clock()
        due = int((now - self.began) * self.rate)
        for i in range(self.i, min(due, self.i + PACED_BURST)):
            self.emit((self.rows[i % LIST],), now)
            self.i = i + 1

    def ack(self, tup_id: Any) -> None:
        self.acked += 1
        if tup_id >= self.recorded_from:
            self.bins[min(int((self.clock() - tup_id) * BINS_PER_SECOND), LAST_BIN)] += 1

    def close(self) -> None:
        self.notebook.close(self.acked, {bin_: count for bin_, count in enumerate(self.bins) if count})


class StampedWords(Words):
    """A million rows are a second."""

    outputs = ("word", "at")
    timestamps = Timestamps("at")

    def next_tuple(self) -> None:
        self.i = i = self.i + 1
        self.emit((self.rows[i % LIST], i * 1e-6), i)


class CountBySecond(WindowBolt):
    """As many rows as are counted, in windows that are over or not; each is 100 rows of each of 10,000 words."""

    outputs = ("word", "start", "count")
    windows = Tumbling(1, on="at", fold=Counted())

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.seen = 0
        self.notebook = Notebook(config, context)

    def on_windows(self, window: Window, keys: Sequence[Any], values: Sequence[Any]) -> None:
        self.seen += sum(values)
        self.emit_many(zip(keys, repeat(window.start), values, strict=False))

    def close(self) -> None:
        self.notebook.close(self.seen + sum(self._windows.values()))


class Split(Bolt):
    outputs = ("word",)

    def process(self, tup: Any) -> None:
        for word in tup.values[0].split():
            self.emit((word,))


class SplitAtOnce(Split):
    """The words of a sentence by one call."""

    def process(self, tup: Any) -> None:
        self.emit_many(zip(tup.values[0].split()))


class Count(Bolt):
    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.counts: dict[str, int] = {}
        self.notebook = Notebook(config, context)

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1

    def close(self) -> None:
        self.notebook.close(sum(self.counts.values()))


class Remember(Count):
    counts = KeyedState(default=0)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.notebook = Notebook(config, context)

    def process(self, tup: Any) -> None:
        self.counts[tup.values[0]] += 1


class RememberedSentences(RememberedWords, Sentences):
    pass


class RememberedPaced(RememberedWords, Paced):
    pass


class RememberedStampedWords(RememberedWords, StampedWords):
    pass


SPOUTS: Mapping[Workload, tuple[type[Words], type[Words]]] = {
    "words": (Words, RememberedWords),
    "sentences": (Sentences, RememberedSentences),
    "paced": (Paced, RememberedPaced),
    "windows": (StampedWords, RememberedStampedWords),
}
"""By workload: where rows are acked, and where snapshots are taken."""


def build(
    workload: Workload, spouts: int, counters: int, batch: int, pending: int, config: Mapping[str, Any]
) -> type[Topology]:
    """The topology of one workload.

    Args:
        workload: what is run.
        spouts: tasks of the spout; the splitting bolt has as many.
        counters: tasks of the counting bolt.
        batch: the largest batch, in words.
        pending: open trees a spout task, in words; a sentence is one tree, and counts as ten.
        config: the rest of the topology's configuration.
    """
    builder = TopologyBuilder(f"benchmark-{workload}")
    of_words = {"topology.executor.batch.rows": batch}
    trees = 1
    remembers = config.get("topology.reliability.mode") == "EFFECTIVELY_ONCE"
    spout = SPOUTS[workload][remembers]
    if workload == "sentences":
        trees = WORDS_IN_SENTENCE
        source = builder.add_spout("sentences", spout, par=spouts)
        split = SplitAtOnce if config.get(BULK) else Split
        words = builder.add_bolt("split", split, par=spouts, inputs=[source], config=of_words)
    else:
        words = builder.add_spout("words", spout, par=spouts)
    count = CountBySecond if workload == "windows" else Remember if remembers else Count
    builder.add_bolt("count", count, par=counters, inputs={words: Grouping.fields("word")}, config=of_words)
    builder.set_config(
        {
            "topology.executor.batch.rows": max(1, batch // trees),
            "topology.max.spout.pending": max(1, pending // trees),
            **config,
        }
    )
    return builder.build()
