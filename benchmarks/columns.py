"""Staged Arrow files through a spout, a bolt and a sink, all acked: bolts for columns, and bolts for rows.

The files are what Spark would have staged, and the spout is the one that reads those; Spark itself is not needed.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa

from ardea.spark.index import IndexWriter
from ardea.spark.job import PROGRESS
from ardea.spark.spout import FILE_BYTES
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from benchmarks.column_topology import ROWS_IN_BATCH, Kind, Note, Staged
from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree
from benchmarks.results import BenchmarkError, per_million
from benchmarks.topologies import word_list

PARTITIONS = 8
WITHIN = 600.0


class ColumnsResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run: from the first row emitted to the last one acked."""

    kind: Kind
    rows: int
    spouts: int
    seconds: float
    rows_per_second: float
    cpu_per_million: float | None


def stage(folder: Path, rows: int) -> None:
    """So many rows of (long, string, double), in eight partitions: ids from 0, amounts of half the id."""
    (folder / PROGRESS).mkdir(parents=True)
    run = Run(Folder(str(folder)), "run-1", FILE_BYTES, frozenset())
    (folder / run.name).mkdir()
    words = pa.array(word_list())
    with IndexWriter(folder) as writer:
        for number in range(PARTITIONS):
            ids = range(number * rows // PARTITIONS, (number + 1) * rows // PARTITIONS)
            writer.publish(write_partition(run, number, 0, _batches(ids, words), folder))
        writer.complete()


def _batches(ids: range, words: pa.Array) -> Iterator[pa.RecordBatch]:
    for start in range(ids.start, ids.stop, ROWS_IN_BATCH):
        numbers = np.arange(start, min(start + ROWS_IN_BATCH, ids.stop))
        columns = [pa.array(numbers), words.take(pa.array(numbers % len(words))), pa.array(numbers / 2)]
        yield pa.record_batch(columns, Staged.outputs)


def measure(kind: Kind, rows: int, spouts: int) -> ColumnsResult:
    """Runs it to its end.

    Raises:
        BenchmarkError: it did not start or did not end, or its counters do not add up.
    """

    def source(notes: Path) -> str:
        staged = notes.parent / "staged"
        stage(staged, rows)
        arguments = (kind, spouts, str(staged), str(notes))
        return f"from benchmarks.column_topology import build\n\nTOPOLOGY = build{arguments!r}\n"

    with run_topology(source) as topology:
        cpu = _cpu_until_the_end(topology)
        shutil.rmtree(topology.notes.parent / "staged")
        notes = {path.name: msgspec.json.decode(path.read_bytes(), type=Note) for path in topology.notes.iterdir()}
    seconds = check(notes, rows, spouts)
    return ColumnsResult(
        kind=kind,
        rows=rows,
        spouts=spouts,
        seconds=seconds,
        rows_per_second=rows / seconds,
        cpu_per_million=per_million(cpu, rows),
    )


def check(notes: Mapping[str, Note], rows: int, spouts: int) -> float:
    """Seconds from the first row to the last ack; BenchmarkError unless everything arrived, once."""
    heard = [note for name, note in notes.items() if name.startswith("spout-")]
    acked = sum(note.rows for note in heard)
    if (len(heard), acked) != (spouts, rows):
        raise BenchmarkError(
            f"the counters do not add up: {rows:,} rows staged for {spouts} tasks, {acked:,} acked to {len(heard)}"
        )
    check_sinks([note for name, note in notes.items() if name.startswith("sink-")], rows)
    return max(note.ended for note in heard) - min(note.began for note in heard)


def check_sinks(sinks: Sequence[Note], rows: int) -> None:
    """BenchmarkError unless every row of :func:`stage` arrived, once."""
    expected = rows * (rows - 1) // 2
    got, ids, amounts = (sum(getattr(note, name) for note in sinks) for name in ("rows", "ids", "amounts"))
    if (got, ids) != (rows, expected) or abs(amounts - expected) > 1e-9 * expected:
        raise BenchmarkError(
            f"the counters do not add up: {rows:,} rows staged, {got:,} in the sink;"
            f" ids sum up to {ids:,} instead of {expected:,}, amounts to {amounts:,.1f}"
        )


def _cpu_until_the_end(topology: Running) -> float:
    """CPU seconds of all its processes, but for the supervisor's and what came after the last look."""
    tree, last = ProcessTree(topology.components), {}

    def look() -> None:
        last.update({pid: usage.cpu for pid, usage in tree.usage().items()})

    topology.finish(WITHIN, look)
    return sum(last.values())


def both(rows: int, spouts: int) -> list[ColumnsResult]:
    """Columns first."""
    kinds: tuple[Kind, ...] = ("columns", "rows")
    return [measure(kind, rows, spouts) for kind in kinds]
