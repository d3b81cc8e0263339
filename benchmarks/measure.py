"""One run of one case: start, warm up, measure a window, drain, check, end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ardea.metrics import Totals
from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree, Usage
from benchmarks.results import (
    BenchmarkError,
    Case,
    Result,
    Use,
    bins_quantile,
    check_counts,
    count_at,
    last_count,
    merge_bins,
    per_million,
    summarise_use,
)
from benchmarks.topologies import BULK, FOLDER, RATE, WARMUP, Line

STARTS_WITHIN = 60.0
MODES = {"atleast": "ATLEAST_ONCE", "atmost": "ATMOST_ONCE", "effectively": "EFFECTIVELY_ONCE"}
Lines = dict[str, list[Line]]


def source_of(case: Case) -> Callable[[Path], str]:
    """The topology's file, as every process imports it."""

    def source(notes: Path) -> str:
        config = {
            "topology.reliability.mode": MODES[case.mode],
            "topology.stmgrs": case.containers,
            "heron.streammgr.cache.drain.frequency.ms": case.drain_ms,
            FOLDER: str(notes),
            RATE: case.rate or 0,
            WARMUP: case.warmup,
            BULK: case.bulk,
        }
        arguments = (case.workload, case.spouts, case.counters, case.batch, case.pending, config)
        return f"from benchmarks.topologies import build\n\nTOPOLOGY = build(*{arguments!r})\n"

    return source


def read_lines(notes: Path) -> Lines:
    """Every task's lines, by ``component-task``."""
    return {
        path.stem: [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]
        for path in sorted(notes.glob("*.jsonl"))
    }


def run(case: Case, idle_cores: float | None = None) -> Result:
    """Runs a case.

    Args:
        case: what to run.
        idle_cores: what the same topology takes when it does nothing, if the result is to say what is beyond it.

    Raises:
        BenchmarkError: it did not start, did not end, or its counters do not add up.
    """
    with run_topology(source_of(case)) as topology:
        tree = ProcessTree(topology.components)
        topology.until(_started(topology, case) + case.warmup)
        totals = topology.totals(_spout(case))
        before, others_before, begin = tree.usage(), _not_ours(tree), time.monotonic()
        topology.until(begin + case.seconds)
        after, others_after, end = tree.usage(), _not_ours(tree), time.monotonic()
        window = topology.totals(_spout(case)).since(totals)
        if before.keys() != after.keys():
            raise BenchmarkError("processes ended or were started within the measuring window")
        topology.drain()
        lines = read_lines(topology.notes)
        spouts = {task: each for task, each in lines.items() if task.startswith(f"{_spout(case)}-")}
        counters = {task: each for task, each in lines.items() if task not in spouts}
        if (len(spouts), len(counters)) != (case.spouts, case.counters):
            raise BenchmarkError(f"of the tasks only {', '.join(lines)} told what they counted")
        acked, counted = check_counts(
            {task: last_count(each, task) for task, each in spouts.items()},
            {task: last_count(each, task) for task, each in counters.items()},
            case.words_per_tuple,
        )
    words = case.words_per_tuple * sum(count_at(each, end) - count_at(each, begin) for each in spouts.values())
    seconds = end - begin
    cpu = sum(after[pid].cpu - before[pid].cpu for pid in after)
    p50, p99 = _latencies(case, spouts, window)
    return Result(
        case=case,
        words_per_second=words / seconds,
        p50_ms=p50,
        p99_ms=p99,
        latency_from="histogram" if case.rate is None else "timestamps",
        cpu_per_million=per_million(cpu, words),
        idle_cores=idle_cores,
        net_cpu_per_million=None if idle_cores is None else per_million(cpu - idle_cores * seconds, words),
        cores_busy=cpu / seconds,
        other_cores=max(0.0, others_after - others_before - cpu) / seconds,
        acked_words=acked,
        counted_words=counted,
        use=_use(before, after, seconds),
    )


def _started(topology: Running, case: Case) -> float:
    """When the last spout task began."""

    def first_lines() -> float | None:
        firsts = [path.read_bytes().partition(b"\n") for path in topology.notes.glob(f"{_spout(case)}-*.jsonl")]
        complete = [msgspec.json.decode(line, type=Line).at for line, newline, _ in firsts if newline]
        return max(complete) if len(complete) == case.spouts else None

    return topology.wait_for(first_lines, "all spout tasks have begun", STARTS_WITHIN)


def _spout(case: Case) -> str:
    return "sentences" if case.workload == "sentences" else "words"


def _not_ours(tree: ProcessTree) -> float:
    """CPU seconds of the machine but for this process."""
    return tree.machine_cpu() - time.process_time()


def _latencies(case: Case, spouts: Lines, window: Totals) -> tuple[float | None, float | None]:
    """(p50, p99) in ms."""
    if case.mode != "atleast":
        return None, None
    if case.rate is not None:
        bins = merge_bins(lines[-1] for lines in spouts.values())
        return bins_quantile(bins, 0.5), bins_quantile(bins, 0.99)
    p50, p99 = window.quantile(0.5), window.quantile(0.99)
    return None if p50 is None else p50 * 1000, None if p99 is None else p99 * 1000


def _use(before: Mapping[int, Usage], after: Mapping[int, Usage], seconds: float) -> dict[str, Use]:
    resident: dict[str, list[int]] = {}
    cores: dict[str, list[float]] = {}
    for pid, usage in after.items():
        resident.setdefault(usage.kind, []).append(usage.resident)
        cores.setdefault(usage.kind, []).append((usage.cpu - before[pid].cpu) / seconds)
    return summarise_use(resident, cores)
