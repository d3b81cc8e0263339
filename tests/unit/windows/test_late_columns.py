"""Rows of columns that are in no window go on as columns, each in its own tree, whatever stands in them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from ardea import Grouping, Spout, Stream, Timestamps, Topology
from ardea.protocol.arrow import decode_batch, encode_batch
from ardea.protocol.ids import column, make_roots
from ardea.protocol.wire_pb2 import ARROW, ONE, ROWS, WATERMARK, Header
from ardea.testing import CollectBolt
from ardea.windows import Count, PartialWindows, Tumbling, WindowBolt
from tests.unit.heron_instance.bench import Bench

SECOND = 10**9


class Times(Spout):
    outputs = ("key", "at")
    timestamps = Timestamps("at")

    def next_tuple(self): ...


class Counts(WindowBolt):
    outputs = ("key", "count", Stream(Times.outputs, "late"))
    windows = Tumbling(1000, on="at", fold=Count())

    def on_window(self, key, window, value):
        self.emit((key, value))


class Timed(Topology):
    times = Times.spec()
    counts = Counts.spec(inputs={times: Grouping.fields("key")})
    kept = CollectBolt.spec(inputs=[counts["late"]])


class Parts(PartialWindows):
    outputs = (*Times.outputs, "part")
    of = Counts


class Ahead(Topology):
    times = Times.spec()
    parts = Parts.spec(inputs=[times])
    counts = Counts.spec(inputs={parts: Grouping.fields("key")})
    kept = CollectBolt.spec(inputs=[counts["late"]])


def arrives(bench, batch):
    """The roots of its rows."""
    numbers = np.arange(batch.num_rows)
    roots = make_roots(bench.spout, numbers, numbers)
    header = Header(kind=ROWS, source=bench.spout, rows=batch.num_rows, ids=ONE, codec=ARROW)
    bench.executor.handle((header, [encode_batch(batch), roots.tobytes(), (roots | np.uint64(1)).tobytes()]))
    bench.turn()
    return roots.tolist()


def refused(bench):
    """Rows of late, as a batch, and the tree of each."""
    sent = [message for message in bench.output.messages if message.header.kind == ROWS]
    batches = [decode_batch(message.frames[0]) for message in sent]
    roots = [root for message in sent for root in column(message.frames[-2]).tolist()]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0], roots


@pytest.mark.parametrize("topology", [Timed, Ahead])
@pytest.mark.parametrize(
    ("stamps", "kind", "late", "unstamped"),
    [
        ([5001 * SECOND + 1, None, 5002 * SECOND + 1], pa.timestamp("ns"), [], [1]),
        ([5001 * SECOND + 1, 5002 * SECOND + 1, 2 * SECOND + 1], pa.timestamp("ns"), [2], []),
        ([5_001_000_000, 2**63 - 1, 5_002_000_000, 2_000_000, -(2**63)], pa.timestamp("us"), [3], [1, 4]),
    ],
)
def test_rows_without_a_stamp_and_late_ones(topology, stamps, kind, late, unstamped):
    bench = Bench(topology, "counts", "parts" if topology is Ahead else "times")
    bench.executor.handle((Header(kind=WATERMARK, source=bench.spout, watermark=4000.0), []))
    columns = {"key": ["a"] * len(stamps), "at": pa.array(stamps, kind)}
    part = {} if topology is Timed else {"part": pa.nulls(len(stamps), pa.binary())}
    roots = arrives(bench, pa.record_batch({**columns, **part}))
    counts = bench.instruments.windows
    assert (counts.late, counts.unstamped) == (len(late), len(unstamped))
    assert dict(bench.component._windows) == {("a", 5_000_000_000): 2}
    places = [*unstamped, *late]
    rows, trees = refused(bench)
    assert rows.equals(pa.record_batch(columns).take(pa.array(places)))
    assert trees == [roots[place] for place in places]
