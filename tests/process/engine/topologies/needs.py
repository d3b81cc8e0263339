"""What Trident, Kafka and Spark need of the engine: a coordinator with names of its own, and columns."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from leaving import LeavingBolt, LeavingSpout

from ardea import GlobalStreamId, Grouping, Stream, TopologyBuilder

MASTER, COORD = "$mastercoord-bg0", "$coord-bg0"
SIZES = [0, 100_000, 3, 0, 20_000]
"""Rows of each batch, out of one call."""
ARROW_ROWS, EACH = 50_000, 7_000


class Master(LeavingSpout):
    """Begins a batch by ``next_tuple`` and commits it from ``ack``, with one tree allowed to be open."""

    outputs = [Stream(["tx"], "$batch"), Stream(["tx"], "$commit")]
    config = {"topology.max.spout.pending": 1}

    def begin(self):
        self.tx = 0
        self.busy = False
        self.verdicts = []
        self.idles = 0

    def next_tuple(self):
        if self.tx == len(SIZES):
            self.finish()
        elif not self.busy:
            self.busy = True
            self.emit([self.tx], tup_id=("batch", self.tx), stream="$batch")

    def ack(self, tup_id):
        self.verdicts.append(tup_id)
        kind, tx = tup_id
        if kind == "batch":
            self.emit([tx], tup_id=("commit", tx), stream="$commit")
        else:
            self.tx += 1
            self.busy = False

    def idle(self):
        self.idles += 1

    def close(self):
        self.leave({"verdicts": self.verdicts, "idles": self.idles})


class Source(LeavingBolt):
    """All rows of a batch in one call; then tells every reader how many it was sent, none included."""

    outputs = [Stream(["tx", "n"]), Stream(["tx", "count"], COORD, direct=True)]

    def process(self, tup):
        tx = tup["tx"]
        for n in range(SIZES[tx]):
            self.emit([tx, n])
        for task in self.context.component_tasks("b-0"):
            self.emit([tx, SIZES[tx]], stream=COORD, direct_task=task)


class Reader(LeavingBolt):
    """Every task gets every row; what it is told has to be what has come, at that moment and at the commit."""

    def begin(self):
        self.got = Counter()
        self.told = []
        self.committed = []

    def process(self, tup):
        if tup.stream == COORD:
            assert self.got[tup["tx"]] == tup["count"], f"{tup.as_dict()}: {self.got}"
            self.told.append(tup["tx"])
        elif tup.stream == "$commit":
            self.committed.append(tup["tx"])
        else:
            assert tup["n"] == self.got[tup["tx"]], "out of order"
            self.got[tup["tx"]] += 1

    def end_of_input(self):
        self.leave({"got": list(self.got.values()), "told": self.told, "committed": self.committed})


def word(n):
    return f"word {n % 997}"


class Columns(LeavingSpout):
    """Arrow batches, each row with its number as id."""

    outputs = ["n", "word"]

    def begin(self):
        self.next = 0
        self.acked = 0

    def next_tuple(self):
        numbers = range(self.next, min(self.next + EACH, ARROW_ROWS))
        if not numbers:
            self.finish()
            return
        columns = {"n": pa.array(numbers, pa.int64()), "word": [word(n) for n in numbers]}
        self.emit_batch(pa.record_batch(columns), list(numbers))
        self.next += EACH

    def ack(self, tup_id):
        self.acked += 1

    def close(self):
        self.leave(self.acked)


class Rows(LeavingSpout):
    """Each word once, as a row."""

    outputs = ["n", "word"]

    def begin(self):
        self.n = 0

    def next_tuple(self):
        if self.n == 997:
            self.finish()
            return
        self.emit([self.n, word(self.n)])
        self.n += 1


class ByKey(LeavingBolt):
    """Reads whole batches of both spouts; fails some of the first rows once."""

    def begin(self):
        self.sums = Counter()
        self.words = {"columns": set(), "rows": set()}
        self.failed = set()

    def process_batch(self, rows):
        first = rows[0]
        if first.component == "columns" and first["n"] not in self.failed and len(self.failed) < 3:
            self.failed.add(first["n"])
            for tup in rows:
                self.fail(tup)
            return
        for tup in rows:
            self.sums[tup.component] += tup["n"]
            self.words[tup.component].add(tup["word"])

    def end_of_input(self):
        self.leave({"sums": self.sums, "words": {k: sorted(v) for k, v in self.words.items()}})


def build():
    builder = TopologyBuilder("Needs")
    builder.set_config({"topology.stmgrs": 2})
    master = builder.add_spout(MASTER, Master)
    builder.add_bolt("$spoutcoord-b-0", Source, 1, {master["$batch"]: Grouping.ALL})
    source = "$spoutcoord-b-0"
    inputs = {source: Grouping.ALL, GlobalStreamId(source, COORD): Grouping.DIRECT, master["$commit"]: Grouping.ALL}
    builder.add_bolt("b-0", Reader, 2, inputs)
    builder.add_spout("columns", Columns)
    builder.add_spout("rows", Rows)
    builder.add_bolt("by_key", ByKey, 2, {name: Grouping.fields("word") for name in ("columns", "rows")})
    return builder.build()


Needs = build()
