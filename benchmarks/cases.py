"""Which cases each workload of the command stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from ardea.config import KEYS
from benchmarks.results import Case, Result, SweepRow

PENDING = KEYS["topology.max.spout.pending"]
BATCH = KEYS["topology.executor.batch.rows"]
DRAIN = KEYS["heron.streammgr.cache.drain.frequency.ms"]

EVERY_10_MS = 100.0
HELD = 10_000.0
OFFERED = 100_000.0
CONTAINERS = (1, 2, 4, 8)
SPOUT_CONTAINERS = (2, 4)  # 1 is the first case of all
PENDINGS = (10, 100, 1_000, 10_000, 100_000)
DRAINS_MS = (1.0, 2.0, 5.0, 20.0, 50.0, 100.0)

Run = Callable[[Case], Result]
RunBeyond = Callable[[Case, float | None], Result]


def paced(case: Case, rate: float) -> Case:
    """The same topology with its spouts held to a rate; 0: silent."""
    return replace(case, workload="paced", rate=rate)


def idle(case: Case) -> list[Case]:
    """A tuple every 10 ms, and a topology that does nothing at all."""
    return [paced(case, EVERY_10_MS), paced(case, 0.0)]


def every(case: Case) -> Iterator[Case]:
    """What ``all`` runs, but for the offered loads (each paired with a silent run) and the baseline."""
    one = replace(case, containers=1, spouts=1, counters=1, rate=None)
    for workload in ("words", "sentences"):
        for mode in ("atleast", "atmost"):
            for counters in (1, 2):
                yield replace(one, workload=workload, mode=mode, counters=counters)
    yield from idle(one)
    yield paced(one, HELD)
    for containers in CONTAINERS:
        yield replace(one, containers=containers, spouts=2, counters=6)
    for containers in SPOUT_CONTAINERS:
        yield replace(one, containers=containers, spouts=containers, counters=containers)


def offered(case: Case) -> list[Case]:
    """100,000/s through 2 spouts and 6 counting bolts, over 2 and over 8 containers."""
    wide = paced(replace(case, spouts=2, counters=6), OFFERED)
    return [replace(wide, containers=2), replace(wide, containers=8)]


def compared(case: Case) -> list[Case]:
    """What ``all`` runs against a baseline."""
    one = replace(case, containers=1, spouts=1, counters=1, rate=None)
    return [replace(one, workload="words"), replace(one, workload="sentences")]


def beyond_idle(case: Case, run: RunBeyond) -> list[Result]:
    """The silent topology, then the case, with the CPU that it takes beyond that."""
    silent = run(paced(case, 0.0), None)
    return [silent, run(case, silent.cores_busy)]


def sweep(case: Case, run: Run) -> list[SweepRow]:
    """Each knob over its range and at its default, the other at what ``case`` says."""
    words = replace(case, workload="words", rate=None)
    rows = []
    for pending in sorted({*PENDINGS, PENDING.default}):
        result = run(replace(words, pending=pending))
        rows.append(_row(PENDING.name, pending, pending == PENDING.default, result))
    for drain_ms in sorted({*DRAINS_MS, DRAIN.default}):
        result = run(replace(words, drain_ms=drain_ms))
        rows.append(_row(DRAIN.name, drain_ms, drain_ms == DRAIN.default, result))
    return rows


def _row(knob: str, value: float, default: bool, result: Result) -> SweepRow:
    return SweepRow(knob, value, default, result.words_per_second, result.p50_ms, result.p99_ms)
