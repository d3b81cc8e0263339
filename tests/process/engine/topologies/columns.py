"""Columns from a spout through a bolt for columns to a sink of each kind, whoever dies in between."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from leaving import LeavingBolt, LeavingSpout

from ardea import Grouping, Topology

EACH = 500
KEYS = 97


class Batches(LeavingSpout):
    """Numbers from 0 in batches, until told to end; each row's number is its id."""

    outputs = ["n", "key"]

    def begin(self):
        self.next = self.acked = self.calls = 0

    def next_tuple(self):
        if self.flag("enough"):
            self.finish()
            return
        numbers = np.arange(self.next, self.next + EACH)
        self.emit_batch(pa.record_batch({"n": numbers, "key": numbers % KEYS}), numbers)
        self.next += EACH

    def ack_batch(self, tup_ids):
        assert type(tup_ids) is np.ndarray
        self.acked += len(tup_ids)
        self.calls += 1

    def close(self):
        self.leave({"end": self.next, "acked": self.acked, "calls": self.calls})


class Even(LeavingBolt):
    """Lets even numbers through."""

    outputs = ["n", "key"]

    def process_columns(self, columns):
        kept = np.flatnonzero(columns["n"].to_numpy() % 2 == 0)
        self.emit_batch(columns.batch.take(kept), anchors=kept)


class Gathers(LeavingBolt):
    def begin(self):
        self.numbers = set()
        self.keys = set()
        self.rows = 0

    def end_of_input(self):
        self.leave({"rows": self.rows, "numbers": sorted(self.numbers), "keys": sorted(self.keys)})


class ByColumns(Gathers):
    def process_columns(self, columns):
        self.rows += len(columns)
        self.numbers.update(columns["n"].to_pylist())
        self.keys.update(pc.unique(columns["key"]).to_pylist())
        time.sleep(0.001)


class ByRows(Gathers):
    def process(self, tup):
        number, key = tup.values
        self.rows += 1
        self.numbers.add(number)
        self.keys.add(key)


class Columns(Topology):
    batches = Batches.spec()
    even = Even.spec(inputs={batches: Grouping.fields("key")}, par=2)
    columns = ByColumns.spec(inputs={even: Grouping.fields("key")}, par=2)
    rows = ByRows.spec(inputs={even: Grouping.fields("key")}, par=2)

    config = {
        "topology.stmgrs": 2,
        "topology.max.spout.pending": 5000,
        "topology.message.timeout.secs": 60,
        "heron.metrics.export.interval.sec": 0.2,
    }
