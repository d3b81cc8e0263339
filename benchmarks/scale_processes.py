"""What a topology of real processes costs while nothing is emitted: its start, then CPU and memory of each kind."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree, Usage
from benchmarks.start import SOURCE

UNTIL_REST = 25.0
"""Seconds after the start: links rest by then, and what a start leaves to do is done."""
STARTS_WITHIN = 300.0


@dataclass(frozen=True, slots=True)
class KindCost:
    """The processes of one kind: how many; percent of a core and resident MB of one on the average."""

    count: int
    percent: float
    megabytes: float


@dataclass(frozen=True, slots=True)
class ProcessesResult:
    """``start``: seconds from the first process to the last `initialize`.  ``percent``: of a core, of all together."""

    containers: int
    tasks: int
    start: float
    seconds: float
    percent: float
    kinds: Mapping[str, KindCost]


def sizes(containers: Sequence[int], tasks: int, seconds: float) -> list[ProcessesResult]:
    """One topology after the other, each looked at for so many seconds.

    Raises:
        BenchmarkError: one does not come up.
    """
    return [_measured(count, tasks, seconds) for count in containers]


def _measured(containers: int, tasks: int, seconds: float) -> ProcessesResult:
    began = time.monotonic()
    bolts = containers * (tasks - 1)

    def source(notes: Path) -> str:
        return SOURCE.format(notes=str(notes), spouts=containers, bolts=bolts, containers=containers)

    with run_topology(source) as running:
        _until_all_have_begun(running, containers * tasks)
        start = time.monotonic() - began
        running.until(time.monotonic() + UNTIL_REST)
        tree = ProcessTree(running.components)
        looked, before = time.monotonic(), tree.usage()
        running.until(looked + seconds)
        took, after = time.monotonic() - looked, tree.usage()
    kinds = costs(before, after, took)
    return ProcessesResult(
        containers, tasks, start, took, sum(kind.count * kind.percent for kind in kinds.values()), kinds
    )


def costs(before: Mapping[int, Usage], after: Mapping[int, Usage], seconds: float) -> dict[str, KindCost]:
    """By kind, of the processes that were there at both times."""
    found: dict[str, list[tuple[float, int]]] = {}
    for pid in before.keys() & after.keys():
        used = after[pid].cpu - before[pid].cpu
        found.setdefault(after[pid].kind, []).append((used, after[pid].resident))
    return {
        kind: KindCost(
            len(each),
            100 * sum(used for used, _ in each) / seconds / len(each),
            sum(resident for _, resident in each) / len(each) / 1e6,
        )
        for kind, each in sorted(found.items())
    }


def _until_all_have_begun(running: Running, tasks: int) -> None:
    def begun(notes: Path = running.notes) -> bool | None:
        return len([*notes.iterdir()]) >= tasks or None

    running.wait_for(begun, f"{tasks} tasks had begun", STARTS_WITHIN)
