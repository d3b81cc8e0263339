"""Keys in columns go where the same keys in rows go, whatever their type; rows become columns without loss."""

# ruff: noqa: DTZ001 -- times without a zone are among the keys

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ardea.errors import EncodingError
from ardea.heron_instance.routing import Emitter, make_router
from ardea.plan.logical import GroupingPlan, StreamPlan
from ardea.protocol.arrow import rows_of
from ardea.protocol.column_keys import ColumnKeys
from ardea.protocol.columns import ColumnRows, columns_of, fitted, type_of
from ardea.protocol.keys import key_hash
from tests.sizes import share

EAST = "+05:45"
micros = st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999)


def timestamps(unit, divisor, zone=None):
    return st.sampled_from([pa.timestamp(unit, zone)]), micros.map(lambda n: n // divisor)


def integers(kind, bits, signed=True):
    low = -(2 ** (bits - 1)) if signed else 0
    return st.just(kind), st.integers(low, low + 2**bits - 1)


KINDS = {
    **{f"int{bits}": integers(getattr(pa, f"int{bits}")(), bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": integers(getattr(pa, f"uint{bits}")(), bits, signed=False) for bits in (8, 16, 32, 64)},
    "bool": (st.just(pa.bool_()), st.booleans()),
    "float": (st.sampled_from([pa.float64(), pa.float32()]), st.floats(width=32)),
    "double": (st.just(pa.float64()), st.floats() | st.integers(-(2**60), 2**60).map(float)),
    "text": (st.sampled_from([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]), st.text()),
    "bytes": (st.sampled_from([pa.binary(), pa.large_binary()]), st.binary()),
    "decimal": (st.just(pa.decimal128(20, 3)), st.decimals(-(10**15), 10**15, places=3)),
    "date": (st.sampled_from([pa.date32()]), st.dates()),
    "time": (st.just(pa.time64("us")), st.times()),
    "duration": (st.just(pa.duration("us")), st.timedeltas(dt.timedelta(-(10**8)), dt.timedelta(10**8))),
    "s": timestamps("s", 1_000_000),
    "ms": timestamps("ms", 1000),
    "us": timestamps("us", 1),
    "us, zone": timestamps("us", 1, "UTC"),
    "ms, east": (st.just(pa.timestamp("ms", EAST)), st.integers(-60_000_000_000_000, 250_000_000_000_000)),
    "ns": (st.just(pa.timestamp("ns")), st.integers(-(2**62) // 1000, 2**62 // 1000).map(lambda n: n * 1000)),
    "list": (st.just(pa.list_(pa.int64())), st.lists(st.integers(-9, 9), max_size=3)),
    "null": (st.just(pa.null()), st.none()),
}


@st.composite
def columns(draw, rows):
    kind, values = KINDS[draw(st.sampled_from(sorted(KINDS)))]
    pool = draw(st.lists(values, min_size=1, max_size=5))
    chosen = draw(st.lists(st.none() | st.sampled_from(pool), min_size=rows, max_size=rows))
    kind = draw(kind)
    if pa.types.is_dictionary(kind):
        return pa.array(chosen, kind.value_type).dictionary_encode()
    return pa.array(chosen, kind)


@st.composite
def batches(draw):
    rows = draw(st.integers(1, 12))
    made = [draw(columns(rows)) for _ in range(draw(st.integers(1, 3)))]
    batch = pa.record_batch(made, [f"f{n}" for n in range(len(made))])
    return batch.slice(draw(st.integers(0, rows - 1)))


@settings(max_examples=share(400))
@given(batches())
def test_hashes_are_those_of_the_rows(batch):
    """With a cache that already knows the keys, too."""
    keys = ColumnKeys()
    expected = [key_hash(row) for row in rows_of(batch)]
    assert keys.hashes(batch.columns).tolist() == expected
    assert keys.hashes(batch.columns).tolist() == expected


@pytest.mark.sampled(5)
@pytest.mark.parametrize("kind", sorted(KINDS))
@given(data=st.data())
def test_every_type_alone(kind, data):
    """Each type at least once, alone and with neighbours in a larger key."""
    of, values = KINDS[kind]
    of = data.draw(of)
    given_values = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    plain = pa.array(given_values, of.value_type if pa.types.is_dictionary(of) else of)
    column = plain.dictionary_encode() if pa.types.is_dictionary(of) else plain
    other = pa.array(range(len(column)), pa.int32())
    expected = rows_of(pa.record_batch([column, other], ["a", "b"]))
    assert ColumnKeys().hashes([column]).tolist() == [key_hash(row[:1]) for row in expected]
    assert ColumnKeys().hashes([column, other]).tolist() == [key_hash(row) for row in expected]


def emitter(groups=None):
    return Emitter("c", frozenset(), np.random.default_rng(0), None, groups)


@given(batches(), st.integers(2, 9), st.sampled_from([("fields", None), ("fields", 720), ("partial_key", None)]))
def test_routers_send_columns_where_they_send_rows(batch, tasks, way):
    kind, groups = way
    fields = tuple(batch.schema.names)
    places = tuple(range(10, 10 + tasks))
    grouping, stream = GroupingPlan(kind, fields), StreamPlan("s", fields)
    routers = [
        make_router(grouping, stream, places, emitter(groups)) for _ in range(2)
    ]  # fmt: skip
    for _ in range(2):
        by_rows, by_columns = routers[0].route(rows_of(batch)), routers[1].route(ColumnRows(batch))
        assert by_rows.targets.tolist() == by_columns.targets.tolist()


@pytest.mark.parametrize("column", [pa.array([{"a": 1}]), pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))])
def test_what_is_no_key_names_its_field(column):
    router = make_router(
        GroupingPlan("fields", ("n", "bad")),
        StreamPlan("s", ("n", "bad")),
        (1, 2),
        emitter(),
    )
    with pytest.raises(EncodingError, match=r"component c, stream s, field bad: a value of type dict"):
        router.route(ColumnRows(pa.record_batch([pa.array([1]), column], ["n", "bad"])))


# --- rows to columns --------------------------------------------------------------------------------------------

plain_values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(allow_nan=False), st.text(max_size=3),
    st.binary(max_size=3), st.decimals(-1000, 1000, places=2), st.dates(), st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)), st.lists(st.integers(0, 9), max_size=2),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9)),
)  # fmt: skip
DECLARED = [
    None, "int8", "int32", "int64", "double", "string", "binary", "bool", "date32", "timestamp[us]", "timestamp[s]",
    pa.timestamp("us", "UTC"), pa.decimal128(10, 1), pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64()),
]  # fmt: skip


@settings(max_examples=share(400))
@given(st.lists(st.tuples(plain_values, st.integers(0, 9)), min_size=1, max_size=6), st.sampled_from(DECLARED))
@example([(2.5, 0)], "int64")
@example([(Decimal("2.5"), 0)], "int64")
@example([(dt.datetime(2020, 1, 1, 5), 0)], "date32")
@example([(dt.datetime(2020, 1, 1), 0), (0, 0)], "timestamp[us]")
@example([("text", 0), (b"bytes", 0)], "string")
def test_a_value_is_kept_or_its_row_is_named(rows, declared):
    """Nothing is cut off or changed; a row that does not fit is a null, and said to be."""
    types = {} if declared is None else {"value": type_of(declared)}
    batch, misfits = columns_of(rows, ("value", "n"), types)
    assert batch.schema.names == ["value", "n"]
    if declared is not None:
        assert batch.schema.field("value").type == types["value"]
    bad = {misfit.row for misfit in misfits}
    for place, (got, given_row) in enumerate(zip(rows_of(batch), rows, strict=True)):
        value = given_row[0]
        if place in bad:
            assert got[0] is None
        elif isinstance(value, dict) and isinstance(got[0], dict):
            assert {key: each for key, each in got[0].items() if each is not None} == value
        elif isinstance(value, Decimal) and isinstance(got[0], float):
            assert got[0] == pytest.approx(float(value))
        else:
            assert got[0] == value
        assert got[1] == given_row[1]


@pytest.mark.parametrize(
    ("values", "kept"),
    [([object(), None, 3, "x", 2**70], [None, None, 3, None, None]), ([object(), None, 2**70], [None] * 3)],
)
def test_rows_need_not_go_with_a_value_that_has_no_type(values, kept):
    batch, misfits = columns_of([(value,) for value in values], ("value",), {})
    assert batch.column(0).to_pylist() == kept
    assert [values[misfit.row] for misfit in misfits] == [value for value in values if value not in (None, 3)]


@given(batches(), st.sampled_from(["int16", "int64", "double", "string", "date32", "timestamp[ms]"]))
def test_a_cast_loses_nothing(batch, wanted):
    names = batch.schema.names
    cast, misfits = fitted(batch, names, {names[0]: type_of(wanted)})
    assert cast.column(0).type == type_of(wanted)
    others, given_others = ([column.to_pylist() for column in each.columns[1:]] for each in (cast, batch))
    assert repr(others) == repr(given_others)  # as text, a NaN is a NaN
    bad = {misfit.row for misfit in misfits}
    given_type = batch.column(0).type
    plain = given_type.value_type if pa.types.is_dictionary(given_type) else given_type
    for place in range(batch.num_rows):
        if place in bad:
            assert cast.column(0)[place].as_py() is None
        elif wanted not in ("double", "string"):
            back = cast.column(0).slice(place, 1).cast(plain)
            assert rows_of(pa.record_batch([back], ["a"])) == rows_of(batch.slice(place, 1).select([0]))


def test_columns_take_the_names_of_the_fields():
    batch = pa.record_batch({"x": [1], "y": ["a"]})
    assert fitted(batch, ("n", "word"), {})[0].schema.names == ["n", "word"]


@pytest.mark.parametrize("written", ["int31", "", 7, None, [pa.int32()]])
def test_what_is_no_type_is_refused(written):
    with pytest.raises(ValueError, match="Arrow type"):
        type_of(written)


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.timestamp("ns", "UTC"), pa.duration("ns"), pa.time64("ns")])
def test_nanoseconds_are_read_to_the_microsecond_or_not_at_all(kind):
    """Whether or not pandas is there."""
    assert type(rows_of(pa.record_batch([pa.array([5000], kind)], ["t"]))[0][0]) in (dt.datetime, dt.timedelta, dt.time)
    with pytest.raises(EncodingError, match="column t of"):
        rows_of(pa.record_batch([pa.array([5001], kind)], ["t"]))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_null_in_a_view_is_null(kind):
    empty = "" if kind == pa.string_view() else b""
    values = [None, empty, None, empty * 2]
    hashes = ColumnKeys().hashes([pa.array(values, kind)])
    assert hashes.tolist() == [key_hash([value]) for value in values]
