"""What runs in the tasks of ``columns`` and ``spark``, apart from what measures them: a task has no use for that."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ardea import Bolt, ColumnBatch, Topology, TopologyBuilder, TopologyContext, Tuple
from ardea.spark.job import SparkJob
from ardea.spark.schema import parse_schema
from ardea.spark.spout import FILE_BYTES, StagedSpout
from benchmarks.topologies import FOLDER

Kind = Literal["columns", "rows"]
STAGED = "benchmark.staged"  # the folder of the staged files
SCHEMA = "id bigint, word string, amount double"
ROWS_IN_BATCH = 8192
PENDING = 16 * ROWS_IN_BATCH
CONFIG = {"topology.executor.batch.rows": ROWS_IN_BATCH, "topology.max.spout.pending": PENDING}


class Note(msgspec.Struct, frozen=True):
    """What a task has seen: rows, the sum of their ids, that of their amounts; when (CLOCK_MONOTONIC).

    A spout's rows are those that were acked.
    """

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
        write(self.note, Note(self.rows, began=self.began, ended=self.ended))


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
        write(self.note, Note(self.rows, self.ids, self.amounts))


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


def write(path: Path, note: Note) -> None:
    """What a task has seen."""
    path.write_bytes(msgspec.json.encode(note))
