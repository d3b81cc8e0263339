"""What a run gives, and the arithmetic on it: nothing here touches a process or a clock."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ardea.errors import ArdeaError
from benchmarks.topologies import BINS_PER_SECOND, LAST_BIN, WORDS_IN_SENTENCE, Line, Workload

MIB = 1 << 20


class BenchmarkError(ArdeaError):
    """A run that gives no result: it did not start, did not end, or its counters do not add up."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is run.

    Attributes:
        rate: tuples a second that the spouts are held to, all together; None: as fast as it goes.
        bulk: sentences are split by ``emit_many``.
        pending, batch: in words, see :func:`benchmarks.topologies.build`.
        drain_ms: ``heron.streammgr.cache.drain.frequency.ms``.
        seconds, warmup: the measuring window, and what goes before it.
    """

    workload: Workload
    mode: str = "atleast"
    containers: int = 1
    spouts: int = 1
    counters: int = 1
    rate: float | None = None
    bulk: bool = False
    pending: int
    batch: int
    drain_ms: float
    seconds: float
    warmup: float = 2.0

    @property
    def words_per_tuple(self) -> int:
        """Of the tuples that the spout's acks count."""
        return WORDS_IN_SENTENCE if self.workload == "sentences" else 1


class Use(msgspec.Struct, frozen=True):
    """The processes of one kind: resident MiB at the end of the window, and per cent of a core within it."""

    processes: int
    mib_min: float
    mib_median: float
    mib_max: float
    cpu_median: float
    cpu_max: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one case.

    Attributes:
        words_per_second: acked, within the window.
        p50_ms, p99_ms: complete latency; None where nothing is acked by a tree.
        latency_from: the spout's own ``timestamps`` (0.05 ms), or the engine's ``histogram`` (three buckets a decade).
        cpu_per_million: CPU seconds of all processes for a million words; None when there were none.
        idle_cores: what the same topology takes while it does nothing; None where that was not measured.
        net_cpu_per_million: the same less idle_cores.
        cores_busy: of all processes of the topology.
        other_cores: busy with something else meanwhile; a run with more than a little is worth nothing.
        acked_words, counted_words: in all, after draining; they are equal, or there is no result.
    """

    case: Case
    words_per_second: float
    p50_ms: float | None
    p99_ms: float | None
    latency_from: str
    cpu_per_million: float | None
    idle_cores: float | None
    net_cpu_per_million: float | None
    cores_busy: float
    other_cores: float
    acked_words: int
    counted_words: int
    use: dict[str, Use]


class Round(msgspec.Struct, frozen=True):
    """Ours and the baseline, one after the other."""

    ours: float
    baseline: float

    @property
    def ratio(self) -> float:
        """Ours over the baseline."""
        return self.ours / self.baseline


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Rounds against another program; rates in words/s."""

    command: str
    pending: int
    batch: int
    rounds: list[Round]
    ratio_median: float


class SweepRow(msgspec.Struct, frozen=True):
    """One setting of one knob; ``default``: it is Ardea's own."""

    knob: str
    value: float
    default: bool
    words_per_second: float
    p50_ms: float | None
    p99_ms: float | None


def compare(rounds: Sequence[Round], command: str, case: Case) -> Comparison:
    """The median of the rounds' ratios; one ratio is of one round, in which the machine was the same for both."""
    median = statistics.median(each.ratio for each in rounds)
    return Comparison(command=command, pending=case.pending, batch=case.batch, rounds=list(rounds), ratio_median=median)


def defaults_share(rows: Sequence[SweepRow]) -> float:
    """The default's throughput over the best of its knob, 0 to 1."""
    return next(row.words_per_second for row in rows if row.default) / max(row.words_per_second for row in rows)


def last_count(lines: Sequence[Line], task: str) -> int:
    """What a task had counted when it closed.

    Raises:
        BenchmarkError: it did not close.
    """
    if not lines or not lines[-1].over:
        raise BenchmarkError(f"{task} did not close, so that nobody knows what it counted; its log says why")
    return lines[-1].tuples


def check_counts(acked: Mapping[str, int], counted: Mapping[str, int], words_per_tuple: int) -> tuple[int, int]:
    """(words acked, words counted), by what each task had counted when the topology had drained.

    Raises:
        BenchmarkError: they differ; the run says nothing then.
    """
    all_acked, all_counted = sum(acked.values()) * words_per_tuple, sum(counted.values())
    if all_acked != all_counted:
        tasks = ", ".join(f"{task} {count:,}" for task, count in {**acked, **counted}.items())
        raise BenchmarkError(
            f"the counters do not add up: {all_acked:,} words acked, {all_counted:,} counted ({tasks})",
            hint="Tuples were lost or sent again, or were still open at the end; the topology's logs say which.",
        )
    return all_acked, all_counted


def count_at(lines: Sequence[Line], at: float) -> float:
    """What a task had counted at a time between two of its lines, by a straight line between them.

    Raises:
        BenchmarkError: no two lines lie around that time.
    """
    for before, after in itertools.pairwise(lines):
        if before.at <= at <= after.at:
            share = (at - before.at) / (after.at - before.at) if after.at > before.at else 0.0
            return before.tuples + share * (after.tuples - before.tuples)
    raise BenchmarkError("a spout's samples do not cover the measuring window; the machine is too busy, or it died")


def bins_quantile(bins: Mapping[int, int], q: float) -> float | None:
    """Milliseconds: the middle of the bin that holds the quantile; None without tuples.

    ``LAST_BIN`` holds everything from there on, and stands for its lower end.
    """
    total = sum(bins.values())
    if not total:
        return None
    rank, seen = q * total, 0
    for bin_ in sorted(bins):
        seen += bins[bin_]
        if seen >= rank:
            break
    return (bin_ if bin_ == LAST_BIN else bin_ + 0.5) * 1000 / BINS_PER_SECOND


def merge_bins(lines: Iterable[Line]) -> dict[int, int]:
    """The latencies of several spout tasks together."""
    merged: dict[int, int] = {}
    for line in lines:
        for bin_, count in line.latencies.items():
            merged[bin_] = merged.get(bin_, 0) + count
    return merged


def per_million(cpu_seconds: float, words: float) -> float | None:
    """CPU seconds for a million words; None without any."""
    return cpu_seconds / words * 1e6 if words else None


def summarise_use(resident: Mapping[str, Sequence[int]], cores: Mapping[str, Sequence[float]]) -> dict[str, Use]:
    """By kind; ``resident`` in bytes and ``cores`` in cores, one value a process."""
    return {
        kind: Use(
            processes=len(sizes),
            mib_min=min(sizes) / MIB,
            mib_median=statistics.median(sizes) / MIB,
            mib_max=max(sizes) / MIB,
            cpu_median=statistics.median(cores[kind]) * 100,
            cpu_max=max(cores[kind]) * 100,
        )
        for kind, sizes in sorted(resident.items())
    }
