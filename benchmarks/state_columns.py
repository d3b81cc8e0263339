"""What columns cost effectively once, beside the same graph as rows at least once, and as columns at most once."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from benchmarks.column_topology import Kind, Note
from benchmarks.columns import WITHIN, check_sinks, stage
from benchmarks.harness import run_topology
from benchmarks.measure import MODES

RUNS: Mapping[str, tuple[Kind, str]] = {
    "effectively": ("columns", "effectively"),
    "rows_atleast": ("rows", "atleast"),
    "atmost": ("columns", "atmost"),
}


class InTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Rows a second of each round: columns effectively once, rows at least once, columns at most once."""

    effectively: list[float]
    rows_atleast: list[float]
    atmost: list[float]

    def over(self, other: str) -> float:
        """The median of the rounds' ratios."""
        theirs: list[float] = getattr(self, other)
        return statistics.median(ours / its for ours, its in zip(self.effectively, theirs, strict=True))


def in_turn(
    rows: int, spouts: int, count: int, measured: Callable[[Kind, str, int, int], float] | None = None
) -> list[InTurn]:
    """So many rounds, each of which begins with another one.

    Args:
        rows: that are staged for each run.
        spouts: tasks of the spout.
        count: rounds.
        measured: gives rows a second; None: a run of the topology.

    Raises:
        BenchmarkError: a run gave no result.
    """
    measure = measured or _measure
    rates: dict[str, list[float]] = {name: [] for name in RUNS}
    order = list(rates)
    for number in range(count):
        first = number % len(order)
        for name in (*order[first:], *order[:first]):
            rates[name].append(measure(*RUNS[name], rows, spouts))
    return [InTurn(**rates)]


def _measure(kind: Kind, mode: str, rows: int, spouts: int) -> float:
    def source(notes: Path) -> str:
        staged = notes.parent / "staged"
        stage(staged, rows)
        arguments = (kind, MODES[mode], rows, spouts, str(staged), str(notes))
        return f"from benchmarks.state_columns_topology import build\n\nTOPOLOGY = build{arguments!r}\n"

    with run_topology(source) as topology:
        topology.finish(WITHIN, lambda: None)
        notes = {path.name: msgspec.json.decode(path.read_bytes(), type=Note) for path in topology.notes.iterdir()}
    return rate(notes, rows)


def rate(notes: Mapping[str, Note], rows: int) -> float:
    """Rows a second, from the first emit to the last row in the sink; BenchmarkError unless each arrived once."""
    sinks = [note for name, note in notes.items() if name.startswith("sink-")]
    check_sinks(sinks, rows)
    began = min(note.began for name, note in notes.items() if name.startswith("spout-"))
    return rows / (max(note.ended for note in sinks) - began)


def says(each: InTurn) -> str:
    """For a terminal."""
    medians = (f"{statistics.median(getattr(each, name)):,.0f} {said}" for name, said in SAID.items())
    ratios = ", ".join(f"{each.over(name):.3f} over {said}" for name, said in SAID.items() if name != "effectively")
    return f"rows/s, medians of {len(each.effectively)} rounds: {', '.join(medians)}; median ratios: {ratios}"


SAID = {
    "effectively": "as columns effectively once",
    "rows_atleast": "as rows at least once",
    "atmost": "as columns at most once",
}
