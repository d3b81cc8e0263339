"""Each row that a simulated bolt gets is noted, and paid for, once."""

from __future__ import annotations

import pytest

from ardea import Bolt, Topology
from ardea.testing import RowsSpout, run

ROWS = [[n] for n in range(100)]
COST = 0.01


class ByBatch(Bolt):
    """Takes one by one what came together."""

    outputs = ["n"]

    def process(self, tup):
        self.emit([tup[0]])

    def process_batch(self, rows):
        for tup in rows:
            self.process(tup)


class ByInherited(ByBatch):
    def process_batch(self, rows):
        Bolt.process_batch(self, rows)


class ByColumns(Bolt):
    outputs = ["n"]

    def process(self, values):
        self.emit(values)

    def process_batch(self, rows):
        for values in rows:
            self.process(values)

    def process_columns(self, columns):
        self.process_batch([[n] for n in columns["n"].to_pylist()])


@pytest.mark.parametrize("bolt", [ByBatch, ByInherited, ByColumns])
def test_calls_of_its_own_count_for_nothing(bolt):
    class One(Topology):
        rows = RowsSpout.of(["n"], ROWS).spec()
        bolt_ = bolt.spec(name="bolt", inputs=[rows])
        config = {"topology.spout.wait.ms": 1}

    result = run(One, cost={"bolt": COST})
    assert result.state == "SUCCEEDED"
    assert sorted(result.inputs("bolt")) == [(n,) for n in range(len(ROWS))]
    assert len(ROWS) * COST <= result.time < 1.5 * len(ROWS) * COST
