"""Each row that a simulated bolt gets is noted, and paid for, once."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ardea import Bolt, Spout, Topology
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


FINE = pa.record_batch({"n": [1, 2], "t": pa.array([1, 1000], pa.timestamp("ns"))})


class Fine(Spout):
    outputs = ("n", "t")

    def next_tuple(self):
        self.emit_batch(FINE, [10, 11])
        self.finish()


class Reads(Bolt):
    failing = False

    def process_columns(self, columns):
        assert columns.batch.equals(FINE)
        if Reads.failing:
            Reads.failing = False
            raise ValueError("once")


class Times(Topology):
    times = Fine.spec()
    reads = Reads.spec(inputs=[times])


def test_a_value_that_python_does_not_have_is_none_in_the_record(monkeypatch):
    monkeypatch.setattr(Reads, "failing", True)
    result = run(Times)
    rows = [(1, None), (2, pa.scalar(1, pa.timestamp("us")).as_py())]
    assert (result.state, result.tuples("times")) == ("SUCCEEDED", rows)
    assert result.inputs("reads") == [*rows, *rows]
    (raised,) = result.record.exceptions
    assert (str(raised.error), raised.values, raised.tup_id) == ("once", (1, None), 10)
