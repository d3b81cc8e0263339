"""How fast batches are counted: words through group_by and persistent_aggregate in memory, and small batches."""

from __future__ import annotations

import random
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ardea import Topology
from ardea.context import TopologyContext
from ardea.state import open_state
from ardea.state.manager import Delete
from ardea.trident import BatchSpout, Count, MemoryMapState, TridentTopology
from ardea.trident.spout import BatchCollector
from ardea.trident.store import ROOT
from benchmarks.baseline import rate_of
from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree
from benchmarks.results import Case, per_million
from benchmarks.topologies import FOLDER, word_list

STARTS_WITHIN = 60.0
SIZES = ((10_000, 4), (10, 1), (10, 10))
"""Words a batch, and batches at once."""


class TridentResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run.

    ``state``: files or zookeeper; ``state_writes``: to it, for a batch, as its nodes' versions say; ``baseline``: the
    words/s of another program that ran behind it.
    """

    state: str
    words_in_batch: int
    distinct: int
    pending: int
    batches_per_second: float
    words_per_second: float
    cpu_per_million: float | None
    cores_busy: float
    state_writes: float
    baseline: float | None = None


def some_words(count: int) -> list[str]:
    """By Zipf's law, the same in every process."""
    words = word_list()
    return random.Random(1).choices(words, [1 / rank for rank in range(1, len(words) + 1)], k=count)


class Batches(BatchSpout):
    """The same batch again and again: some words.  Writes down when each is committed."""

    outputs = ("word",)
    kind = "transactional"

    def __init__(self, size: int) -> None:
        self.size = size

    def open(self, config: Mapping[str, Any], context: TopologyContext) -> None:  # noqa: ARG002
        self.rows = [(word,) for word in some_words(self.size)]
        self.notes = Path(config[FOLDER]) / "commits"
        self.commits: list[float] = []
        self.written = 0.0

    def emit_batch(self, batch_id: int, collector: BatchCollector) -> None:  # noqa: ARG002
        collector.emit_rows(self.rows)

    def ack(self, batch_id: int) -> None:  # noqa: ARG002
        self.commits.append(now := time.monotonic())
        if now > self.written + 0.25:
            self.written = now
            with self.notes.open("a") as file:
                file.write("".join(f"{at}\n" for at in self.commits))
            self.commits.clear()


def name_of(notes: Path) -> str:
    """Of the topology, one for each run: a state manager that outlives it would let the next one go on from there."""
    return f"trident-{notes.parent.name}"


def build(size: int, pending: int, folder: str) -> type[Topology]:
    """One task for each component, as two cores can run."""
    topology = TridentTopology(name_of(Path(folder)))
    topology.set_config(
        {"topology.trident.batch.emit.interval.millis": 0, "topology.max.spout.pending": pending, FOLDER: folder}
    )
    stream = topology.new_stream("words", Batches(size))
    stream.group_by("word").persistent_aggregate(MemoryMapState(), Count(), "count")
    return topology.build()


def measure(size: int, pending: int, seconds: float, warmup: float, address: str | None = None) -> TridentResult:
    """Runs it, with transactions at that state manager's address, by default in files.

    Raises:
        BenchmarkError: it did not start or did not end.
    """

    def source(notes: Path) -> str:
        return f"from benchmarks.trident import build\n\nTOPOLOGY = build({size}, {pending}, {str(notes)!r})\n"

    with run_topology(source, address) as topology, transactions(topology) as writes:
        commits = _reader(topology.notes / "commits")
        topology.wait_for(lambda: commits() or None, "batches are committed", STARTS_WITHIN)
        tree = ProcessTree(topology.components)
        begin = time.monotonic() + warmup
        topology.until(begin)
        written, before, begin = writes(), tree.usage(), time.monotonic()
        topology.until(begin + seconds)
        after, end = tree.usage(), time.monotonic()
        written = writes() - written
        topology.until(end + 1.0)
        found = commits()
        batches = bisect_left(found, end) - bisect_left(found, begin)
        topology.drain()
    cpu = sum(after[pid].cpu - before[pid].cpu for pid in after.keys() & before.keys())
    words = batches * size
    return TridentResult(
        state="files" if address is None else address.partition("://")[0],
        words_in_batch=size,
        distinct=len(set(some_words(size))),
        pending=pending,
        batches_per_second=batches / (end - begin),
        words_per_second=words / (end - begin),
        cpu_per_million=per_million(cpu, words),
        cores_busy=cpu / (end - begin),
        state_writes=written / max(1, batches),
    )


@contextmanager
def transactions(topology: Running) -> Iterator[Callable[[], int]]:
    """Counts the writes to what the topology remembers of its batches, and removes that at the end.

    Each write to a node raises its version by one; a batch of a BatchSpout makes and removes no node.
    """
    with open_state(topology.state) as state:

        def nodes(path: str) -> Iterator[str]:
            for child in (f"{path}/{name}" for name in state.children(path)):
                if state.exists(child):
                    yield child
                yield from nodes(child)

        root = f"{ROOT}/{name_of(topology.notes)}"
        yield lambda: sum(state.get(node).version for node in nodes(root))
        for node in list(nodes(root)):
            state.transaction([Delete(node)])


def _reader(file: Path) -> Callable[[], list[float]]:
    """When batches were committed, ascending."""

    def read() -> list[float]:
        lines = file.read_text().splitlines() if file.exists() else []
        return sorted(float(line) for line in lines)

    return read


def all_cases(case: Case, address: str | None, baseline: Path | None) -> list[TridentResult]:
    """10,000 words a batch, and ten; of the case only the times count, and what the baseline is called with."""
    return [_beside(case, baseline, measure(*each, case.seconds, case.warmup, address)) for each in SIZES]


def _beside(case: Case, baseline: Path | None, result: TridentResult) -> TridentResult:
    return result if baseline is None else msgspec.structs.replace(result, baseline=rate_of(baseline, case))
