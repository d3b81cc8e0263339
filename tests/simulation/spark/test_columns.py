"""Columns as Spark writes them: the same values as of single rows, and equal keys meet."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from ardea import Grouping, Spout, Topology
from ardea.testing import CollectBolt, RowsSpout, run

SCHEMA = pa.schema(
    {
        "price": pa.decimal128(10, 2),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
        "raw": pa.binary(),
        "tags": pa.list_(pa.string()),
        "place": pa.struct({"lat": pa.float64(), "names": pa.map_(pa.string(), pa.int32())}),
        "counts": pa.map_(pa.string(), pa.int32()),
    }
)
ROWS = [
    (
        Decimal(f"{n}.50"),
        datetime(2024, 5, 1, n, tzinfo=UTC),
        datetime(2024, 5, 1, n),  # noqa: DTZ001 -- a timestamp_ntz has no zone
        date(2024, 5, n + 1),
        bytes([n]),
        [f"t{n}", None],
        {"lat": n / 2, "names": {"a": n}},
        {"x": n, "y": None},
    )
    for n in range(20)
] + [(None,) * len(SCHEMA)]


class Columns(Spout):
    outputs = SCHEMA.names

    def next_tuple(self):
        columns = [pa.array(column, each.type) for column, each in zip(zip(*ROWS, strict=True), SCHEMA, strict=True)]
        self.emit_batch(pa.record_batch(columns, schema=SCHEMA), range(len(ROWS)))
        self.finish()


def by_price(row):
    return -1 if row[0] is None else row[0]


@pytest.mark.parametrize("key", ["price", "at", "local", "day", "raw", "tags"])
def test_columns_are_what_rows_are(key):
    class Both(Topology):
        columns = Columns.spec()
        rows = RowsSpout.of(SCHEMA.names, ROWS).spec()
        by_columns = CollectBolt.spec(par=3, inputs={columns: Grouping.fields(key)})
        by_rows = CollectBolt.spec(par=3, inputs={rows: Grouping.fields(key)})

    result = run(Both)
    assert result.state == "SUCCEEDED"
    assert sorted(result.inputs("by_columns"), key=by_price) == sorted(ROWS, key=by_price)
    places = []
    for sink in ("by_columns", "by_rows"):
        tasks = sorted({r.task for r in result.received[sink]})
        places.append({r.values[0]: tasks.index(r.task) for r in result.received[sink]})
    assert places[0] == places[1]
