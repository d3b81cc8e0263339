"""Whole columns instead of rows: a spout emits Arrow batches, a bolt filters them, another sums them up.

    ardea run examples/columns.py --logs sum

No Python code looks at a single row.  Needs `pip install 'ardea[arrow]'`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ardea import Bolt, Spout, Topology

BATCHES, ROWS = 100, 1000


class Numbers(Spout):
    outputs = ["number"]

    def initialize(self, config, context):
        self.batch = 0

    def next_tuple(self):
        first = self.batch * ROWS
        numbers = range(first, first + ROWS)
        self.emit_batch(pa.record_batch({"number": pa.array(numbers)}), tup_ids=numbers)
        self.batch += 1
        if self.batch == BATCHES:
            self.finish()


class Even(Bolt):
    outputs = ["number"]

    def process_columns(self, columns):
        even = pc.equal(pc.bit_wise_and(columns["number"], 1), 0)
        self.emit_batch(columns.batch.filter(even), anchors=pc.indices_nonzero(even))


class Sum(Bolt):
    def initialize(self, config, context):
        self.sum = 0

    def process_columns(self, columns):
        self.sum += pc.sum(columns["number"]).as_py()

    def end_of_input(self):
        print("the sum of the even numbers is", self.sum)


class Columns(Topology):
    numbers = Numbers.spec()
    even = Even.spec(inputs=[numbers], par=2)
    sum = Sum.spec(inputs=[even])
    config = {"heron.resources.instance.cpu": 0.1, "topology.container.cpu.padding": 0.2}  # on a cluster
