"""What tests of columns share: numbered rows as batches and as rows, and bolts that let them through."""

from __future__ import annotations

import pyarrow as pa

from ardea import Bolt, Spout
from ardea.testing import RowsSpout

TOTAL, EACH = 600, 130
WORDS = [f"word {n % 37}" if n % 37 else None for n in range(TOTAL)]
PAIRS = [(n, WORDS[n]) for n in range(TOTAL)]


def a_batch(start, end):
    numbers = range(start, end)
    return pa.record_batch([pa.array(numbers, pa.int64()), pa.array([WORDS[n] for n in numbers])], ["a", "b"])


class Batches(Spout):
    """All rows, in batches of 130, with their numbers as ids."""

    outputs = ["n", "word"]

    def initialize(self, config, context):
        self.next = 0

    def next_tuple(self):
        end = min(self.next + EACH, TOTAL)
        if self.next == end:
            self.finish()
            return
        self.emit_batch(a_batch(self.next, end), range(self.next, end))
        self.next = end


ROWS_OF = RowsSpout.of(["n", "word"], PAIRS)


class Same(Bolt):
    """Columns in, the same columns out."""

    outputs = ["n", "word"]

    def process_columns(self, columns):
        assert columns.batch.schema.names == ["n", "word"]
        assert len(columns) == len(columns["n"]) == len(columns[1])
        self.emit_batch(columns.batch)


class SameRows(Bolt):
    outputs = ["n", "word"]

    def process(self, tup):
        self.emit(tup.values)
