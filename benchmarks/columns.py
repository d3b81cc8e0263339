"""Staged Arrow files through a spout, a bolt and a sink, all acked: bolts for columns, and bolts for rows.

The files are what Spark would have staged, and the spout is the one that reads those; Spark itself is not needed.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ardea import Bolt, ColumnBatch, Topology, TopologyBuilder, TopologyContext, Tuple
from ardea.spark.index import IndexWriter
from ardea.spark.job import PROGRESS, SparkJob
from ardea.spark.schema import parse_schema
from ardea.spark.spout import FILE_BYTES, StagedSpout
from ardea.spark.stage import Run, write_partition
from ardea.spark.storage import Folder
from benchmarks.harness import Running, run_topology
from benchmarks.processes import ProcessTree
from benchmarks.results import BenchmarkError, per_million
from benchmarks.topologies import FOLDER, word_list

Kind = Literal["columns", "rows"]
STAGED = "benchmark.staged"  # the folder of the staged files
SCHEMA = "id bigint, word string, amount double"
ROWS_IN_BATCH = 8192
PARTITIONS = 8
PENDING = 16 * ROWS_IN_BATCH
WITHIN = 600.0
CONFIG = {"topology.executor.batch.rows": ROWS_IN_BATCH, "topology.max.spout.pending": PENDING}


class ColumnsResult(msgspec.Struct, frozen=True, kw_only=True):
    """One run: from the first row emitted to the last one acked."""

    kind: Kind
    rows: int
    spouts: int
    seconds: float
    rows_per_second: float
    cpu_per_million: float | None


class Note(msgspec.Struct, frozen=True):
    """What a task has seen: rows, the sum of their ids, that of their amounts; a spout when (CLOCK_MONOTONIC)."""

    rows: int
    ids: int = 0
    amounts: float = 0.0
    began: float = 0.0
    ended: float = 0.0


class HereJob(SparkJob):
    """Staged where the configuration says, without a driver."""

    def shared_folder(self, spout: str, config: Mapping[str, Any], context: TopologyContext) -> Path | None:  # noqa: ARG002
        return Path(config[STAGED])


class Staged(StagedSpout):
    outputs = [column.name for column in parse_schema(SCHEMA)]
    job = HereJob(lambda spark: spark, parse_schema(SCHEMA), None, ROWS_IN_BATCH, "early", False, FILE_BYTES, None)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.note = Path(config[FOLDER]) / f"spout-{context.this_task_id}"
        self.rows = 0
        self.began = self.ended = 0.0

    def next_tuple(self) -> None:
        self.began = self.began or time.monotonic()
        super().next_tuple()

    def acked(self, first_id: int, rows: int) -> None:
        super().acked(first_id, rows)
        self.rows += rows
        self.ended = time.monotonic()

    def close(self) -> None:
        super().close()
        _write(self.note, Note(self.rows, began=self.began, ended=self.ended))


class RaiseColumns(Bolt):
    outputs = Staged.outputs

    def process_columns(self, columns: ColumnBatch) -> None:
        amounts = pc.multiply(columns["amount"], 2.0)
        self.emit_batch(pa.record_batch([columns["id"], columns["word"], amounts], self.outputs))


class RaiseRows(Bolt):
    outputs = Staged.outputs

    def process(self, tup: Tuple) -> None:
        number, word, amount = tup.values
        self.emit((number, word, amount * 2.0))


class Sink(Bolt):
    """Sums up."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.note = Path(config[FOLDER]) / f"sink-{context.this_task_id}"
        self.rows = self.ids = 0
        self.amounts = 0.0

    def close(self) -> None:
        _write(self.note, Note(self.rows, self.ids, self.amounts))


class SinkColumns(Sink):
    def process_columns(self, columns: ColumnBatch) -> None:
        self.rows += len(columns)
        self.ids += pc.sum(columns["id"]).as_py()
        self.amounts += pc.sum(columns["amount"]).as_py()


class SinkRows(Sink):
    def process(self, tup: Tuple) -> None:
        number, _, amount = tup.values
        self.rows += 1
        self.ids += number
        self.amounts += amount


def build(kind: Kind, spouts: int, staged: str, folder: str) -> type[Topology]:
    """One task each for bolt and sink."""
    topology = TopologyBuilder(f"benchmark-{kind}")
    topology.set_config({**CONFIG, FOLDER: folder, STAGED: staged})
    rows = topology.add_spout("staged", Staged, par=spouts)
    raised = topology.add_bolt("raised", RaiseColumns if kind == "columns" else RaiseRows, inputs=[rows])
    topology.add_bolt("sink", SinkColumns if kind == "columns" else SinkRows, inputs=[raised])
    return topology.build()


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
        return f"from benchmarks.columns import build\n\nTOPOLOGY = build{(kind, spouts, str(staged), str(notes))!r}\n"

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


def _write(path: Path, note: Note) -> None:
    path.write_bytes(msgspec.json.encode(note))
