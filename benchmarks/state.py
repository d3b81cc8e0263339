"""What it costs to remember: modes in turn, and snapshots of a million keys."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ardea.snapshots.folder import Folder
from ardea.snapshots.manifest import File, decode_manifest, manifest_name
from ardea.state import open_state, paths, records
from ardea.state.records import TimelineRecord
from benchmarks.harness import Running, run_topology
from benchmarks.results import BenchmarkError, Case, Result
from benchmarks.state_topology import CHANGED, EVERY, KEYS, NEVER, SPOUT, TALLY, Note

OTHERS = ("atleast", "atmost")
LOADED_WITHIN = 120.0


class ModesResult(msgspec.Struct, frozen=True, kw_only=True):
    """Words a second effectively once, each round's, and over those of the other modes in the same round."""

    effectively: list[float]
    atleast: list[float]
    atmost: list[float]

    def over(self, other: str) -> float:
        """The median of the rounds' ratios."""
        theirs: list[float] = getattr(self, other)
        return statistics.median(ours / its for ours, its in zip(self.effectively, theirs, strict=True))


def modes(case: Case, count: int, run: Callable[[Case], Result]) -> list[ModesResult]:
    """So many rounds of the three modes; each begins with another one.

    Raises:
        BenchmarkError: a run gave no result.
    """
    rates: dict[str, list[float]] = {mode: [] for mode in ("effectively", *OTHERS)}
    order = list(rates)
    for number in range(count):
        first = number % len(order)
        for mode in (*order[first:], *order[:first]):
            rates[mode].append(run(replace(case, workload="words", mode=mode, rate=None)).words_per_second)
    return [ModesResult(**rates)]


class LargeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One round: ``rate`` and ``rate_without`` in rows/s, with snapshots and without.

    Attributes:
        pauses_ms: of the bolt, from before its state is taken to its next row, each snapshot's.
        gap_ms, gap_without_ms: the longest time between two calls of the spout's ``next_tuple``.
        base_bytes, delta_bytes: the largest file with all keys, and the largest with what had changed.
    """

    rate: float
    rate_without: float
    pauses_ms: list[float]
    gap_ms: float
    gap_without_ms: float
    base_bytes: int
    delta_bytes: int


def large(seconds: float, count: int) -> list[LargeResult]:
    """So many rounds, in turn with and without snapshots."""
    return [_pair(seconds, with_first=number % 2 == 0) for number in range(count)]


def _pair(seconds: float, *, with_first: bool) -> LargeResult:
    runs = {}
    for every in (EVERY, NEVER) if with_first else (NEVER, EVERY):
        runs[every] = _run(seconds, every)
    (notes, files), (without, _) = runs[EVERY], runs[NEVER]
    bases = [file.bytes for file in files if file.name.endswith(".base")]
    deltas = [file.bytes for file in files if file.name.endswith(".delta")]
    if not (bases and deltas):
        raise BenchmarkError("no snapshot of what had changed was taken", hint="Take more --seconds.")
    return LargeResult(
        rate=notes[SPOUT].rows / notes[SPOUT].seconds,
        rate_without=without[SPOUT].rows / without[SPOUT].seconds,
        pauses_ms=[1000 * pause for pause in notes[TALLY].pauses],
        gap_ms=1000 * notes[SPOUT].gap,
        gap_without_ms=1000 * without[SPOUT].gap,
        base_bytes=max(bases),
        delta_bytes=max(deltas),
    )


def _run(seconds: float, every: float) -> tuple[Mapping[str, Note], list[File]]:
    """What both tasks have noted, and the bolt's files of the last snapshot."""

    def source(notes: Path) -> str:
        return f"from benchmarks.state_topology import build\n\nTOPOLOGY = build({str(notes)!r}, {every!r})\n"

    with run_topology(source) as topology:
        topology.wait_for(lambda: (topology.notes / "loaded").exists() or None, "all keys are there", LOADED_WITHIN)
        topology.until(time.monotonic() + seconds)
        files = list(files_of(topology, TALLY))
        topology.drain()
        notes = {name: _note(topology.notes / name) for name in (SPOUT, TALLY)}
    came, counted = notes[TALLY].expected, notes[TALLY].rows
    if came != counted:
        raise BenchmarkError(f"{came:,} rows came to the bolt, and its keys count {counted:,}")
    return notes, files


def _note(file: Path) -> Note:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Note)
    except FileNotFoundError:
        raise BenchmarkError(
            f"the task of {file.name} was ended before it had written what it counted",
            hint="Run nothing else meanwhile.",
        ) from None


def committed(topology: Running) -> int:
    """The last snapshot that counts."""
    state, path = open_state(topology.state), paths.timeline(topology.name)
    try:
        return records.decode(state.get(path).data, TimelineRecord, path).committed
    finally:
        state.close()


def files_of(topology: Running, component: str) -> Iterator[File]:
    """A component's, in the last snapshot that counts."""
    number = committed(topology)
    manifest = decode_manifest(Folder.beside(topology.state, topology.name).read(manifest_name(number)), number)
    for part in manifest.of(component):
        yield from part.files


def says_modes(each: ModesResult) -> str:
    """For a terminal."""
    rates = ", ".join(f"{statistics.median(getattr(each, mode)):,.0f} {mode}" for mode in ("effectively", *OTHERS))
    ratios = ", ".join(f"{each.over(other):.3f} over {other}" for other in OTHERS)
    return f"words/s, medians of {len(each.effectively)} rounds: {rates}; median ratios: {ratios}"


def says_large(each: LargeResult) -> str:
    """For a terminal."""
    pauses = ", ".join(f"{pause:.1f}" for pause in each.pauses_ms)
    return (
        f"{KEYS:,} keys, {CHANGED:,} of them changed an interval: {each.rate:,.0f} rows/s,"
        f" {each.rate / each.rate_without:.3f} of those without snapshots; pauses {pauses} ms; longest gap of the spout"
        f" {each.gap_ms:.1f} ms, without {each.gap_without_ms:.1f} ms;"
        f" a delta has {each.delta_bytes / each.base_bytes:.2%} of the {each.base_bytes:,} bytes of all"
    )
