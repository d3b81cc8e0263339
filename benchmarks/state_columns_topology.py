"""What runs in the tasks of ``state-columns``: the graph of ``columns``, whose sink remembers its sums."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ardea import ColumnBatch, TaskState, Topology, TopologyBuilder, TopologyContext, Tuple
from benchmarks.column_topology import (
    CONFIG,
    STAGED,
    Kind,
    Note,
    RaiseColumns,
    RaiseRows,
    Sink,
    SinkColumns,
    SinkRows,
    Staged,
    write,
)
from benchmarks.topologies import FOLDER

EVERY = 2.0
"""Seconds from a snapshot to the next: a run takes few."""
TOTAL = "benchmark.rows"


class Remembers(Sink):
    """Says when the last row came."""

    sums = TaskState(default=(0, 0, 0.0))

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize(config, context)
        self.rows, self.ids, self.amounts = self.sums
        self.total, self.ended = config[TOTAL], 0.0

    def snapshot(self, number: int) -> None:  # noqa: ARG002
        self.sums = (self.rows, self.ids, self.amounts)

    def close(self) -> None:
        write(self.note, Note(self.rows, self.ids, self.amounts, ended=self.ended))


class RemembersColumns(Remembers, SinkColumns):
    def process_columns(self, columns: ColumnBatch) -> None:
        super().process_columns(columns)
        if self.rows == self.total:
            self.ended = time.monotonic()


class RemembersRows(Remembers, SinkRows):
    def process(self, tup: Tuple) -> None:
        super().process(tup)
        if self.rows == self.total:
            self.ended = time.monotonic()


def build(kind: Kind, mode: str, rows: int, spouts: int, staged: str, folder: str) -> type[Topology]:
    """One task each for bolt and sink."""
    topology = TopologyBuilder(f"benchmark-state-{kind}")
    reliability = {"topology.reliability.mode": mode, "topology.stateful.checkpoint.interval.secs": EVERY}
    topology.set_config({**CONFIG, **reliability, TOTAL: rows, FOLDER: folder, STAGED: staged})
    source = topology.add_spout("staged", Staged, par=spouts)
    raised = topology.add_bolt("raised", RaiseColumns if kind == "columns" else RaiseRows, inputs=[source])
    topology.add_bolt("sink", RemembersColumns if kind == "columns" else RemembersRows, inputs=[raised])
    return topology.build()
