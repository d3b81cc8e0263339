"""Every value that can travel arrives equal; every other is refused, by place and type."""

# ruff: noqa: DTZ001, DTZ901 -- times without a zone are among the values

import collections
import dataclasses
import datetime as dt
import enum
import math
import re
import uuid
from decimal import Decimal
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import EncodingError, ProtocolError
from ardea.protocol.values import RowCodec

CODEC = RowCodec()
Point = collections.namedtuple("Point", "x y")


class Color(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Plain(enum.Enum):
    A = 1


@dataclasses.dataclass
class Order:
    price: int


class Struct(msgspec.Struct):
    price: int


class Hostile:
    def __reduce__(self):
        raise RuntimeError("not me")


class Bomb:
    """Raises when it is unpickled."""

    def __reduce__(self):
        return int, ("no number",)


def arrived(value):
    """What docs say ``value`` arrives as: tuples inside a row as lists, but for those in the keys of a dict."""
    if isinstance(value, list | tuple):
        return [arrived(item) for item in value]
    if isinstance(value, dict):
        return {key: arrived(item) for key, item in value.items()}
    return value


def round_trip(*values, codec=CODEC):
    [row] = codec.decode(codec.encode([values]))
    assert type(row) is tuple
    return row


zones = st.none() | st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
instants = st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=zones)
plain = st.one_of(
    *[st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(), st.binary()]
)
extended = st.one_of(
    *[st.integers(), st.decimals(allow_nan=False), instants, st.dates(), st.times(timezones=zones), st.timedeltas()],
    *[
        st.uuids(),
        st.sampled_from([dt.datetime.min, dt.datetime.max, dt.timedelta.max, dt.timedelta.min, 2**64, -(2**63) - 1]),
    ],
)
scalars = plain | extended
hashable = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2).map(tuple), max_leaves=4)
nested = st.recursive(
    scalars,
    lambda inner: st.one_of(
        *[
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(hashable, inner, max_size=3),
        ]
    ),
    max_leaves=10,
)


@given(st.lists(st.lists(plain, max_size=4), max_size=5))
def test_plain_rows_arrive_equal(rows):
    assert CODEC.decode(CODEC.encode(rows)) == [tuple(row) for row in rows]


@given(st.lists(st.lists(nested, max_size=3).map(tuple), max_size=3))
def test_whatever_can_travel_arrives_equal(rows):
    assert CODEC.decode(memoryview(CODEC.encode(rows))) == [tuple(map(arrived, row)) for row in rows]


@pytest.mark.parametrize(
    "value",
    [
        *[
            1,
            True,
            1.0,
            "a",
            b"a",
            None,
            2**64,
            Decimal("1.50"),
            dt.date(2020, 1, 1),
            dt.time(1, 2),
            dt.timedelta(-1, 5, 7),
        ],
        *[
            uuid.UUID(int=5),
            dt.datetime(2020, 1, 1),
            dt.datetime(2020, 1, 1, 1, 1, 1, 1, dt.UTC),
            Decimal("-0"),
            {(1, (2,)): 3},
        ],
        *[{Decimal("1.5"): [{}], 2**70: {b"k": 1}, (dt.date(1, 1, 1),): 2}],
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", repr(value)),
)
def test_the_type_arrives_too(value):
    [result] = round_trip(value)
    assert (type(result), repr(result)) == (type(value), repr(value).replace("datetime.UTC", "datetime.timezone.utc"))


@pytest.mark.parametrize(
    ("sent", "result"),
    [
        *[(Color.RED, "red"), (Level.LOW, 1), (Point(1, 2), [1, 2]), (collections.Counter("aa"), {"a": 2})],
        *[
            (np.int64(-3), -3),
            (np.float32(0.5), 0.5),
            (np.float64(0.1), 0.1),
            (np.str_("a"), "a"),
            (np.bool_(True), True),
        ],
        *[(np.datetime64("2020-01-01T00:00:01", "ns"), dt.datetime(2020, 1, 1, 0, 0, 1)), (np.datetime64("NaT"), None)],
        *[
            (bytearray(b"a"), b"a"),
            (memoryview(b"abc")[::2], b"ac"),
            (pa.scalar([1, None]), [1, None]),
            ([(1,)], [[1]]),
        ],
        *[
            ({np.int64(1): pa.scalar("x")}, {1: "x"}),
            (type("Text", (str,), {})("a"), "a"),
            (collections.OrderedDict(a=()), {"a": []}),
        ],
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", repr(value)),
)
def test_values_with_a_plain_counterpart_arrive_as_that(sent, result):
    [value] = round_trip(sent)
    assert (type(value), value) == (type(result), result)


def test_nan_and_infinities_arrive():
    row = round_trip(math.nan, Decimal("nan"), Decimal("snan"), math.inf, Decimal("-inf"))
    assert list(map(str, row)) == ["nan", "NaN", "sNaN", "inf", "-Infinity"]


@pytest.mark.parametrize("fold", [0, 1])
def test_a_repeated_hour_keeps_its_meaning(fold):
    """With a zone the instant counts; without one the fold travels."""
    zoned = dt.datetime(2023, 10, 29, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin"))
    local = zoned.replace(tzinfo=None)
    instant, wall, time = round_trip(zoned, local, local.time())
    assert instant.timestamp() == zoned.timestamp()
    assert (instant.tzinfo, wall, wall.fold, time.fold) == (dt.UTC, local, fold, fold)


def test_a_time_in_a_zone_without_a_day_has_no_zone():
    assert round_trip(dt.time(1, 30, tzinfo=ZoneInfo("Europe/Berlin"))) == (dt.time(1, 30),)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        *[
            ({1}, "set"),
            (frozenset(), "frozenset"),
            (Order(1), "Order"),
            (Struct(1), "Struct"),
            (Plain.A, "Plain"),
            (1j, "complex"),
        ],
        *[
            (object(), "object"),
            (np.arange(2), "ndarray"),
            (np.longdouble(1), "longdouble"),
            (int, "type"),
            ("\ud800", "str"),
        ],
        *[
            ([{"a": {1}}], "set"),
            ({("a", Plain.A): 1}, "Plain"),
            (msgspec.msgpack.Ext(1, b""), "Ext"),
            (["\ud800"], "list"),
        ],
        *[(dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1))), "datetime")],
    ],
    ids=lambda value: value if isinstance(value, str) and value.isascii() else type(value).__name__,
)
def test_what_would_arrive_as_something_else_is_refused(value, kind):
    """By place and type."""
    rows = [("fine", 1), ["fine", value], (value, value)]
    with pytest.raises(EncodingError, match="row 1, field 1"):
        CODEC.encode(rows)
    refusal = CODEC.explain(rows)
    assert (refusal.row, refusal.field, refusal.type.rpartition(".")[2]) == (1, 1, kind)
    assert refusal.reason


def test_nothing_to_explain_is_an_error():
    with pytest.raises(LookupError):
        CODEC.explain([(1, [2**64])])


def nest(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_is_limited():
    """A hundred lists in a list arrive, deeper ones and endless ones are refused."""
    assert round_trip(nest(101)) == (nest(101),)
    endless = {}
    endless["self"] = endless
    for value in (nest(102), nest(50_000), endless):
        with pytest.raises(EncodingError, match="deep"):
            CODEC.encode([(value,)])


def decoded(content):
    """Rows, or None if the codec says that it is none."""
    try:
        return CODEC.decode(content)
    except ProtocolError as error:
        return None if error.code == "MALFORMED_ROWS" else error


@given(st.binary(max_size=40) | st.binary(max_size=20).map(b"\x91\x92".__add__))
def test_random_bytes_are_rows_or_an_error_of_the_protocol(content):
    rows = decoded(content)
    assert rows is None or all(type(row) is tuple for row in rows)


@given(
    st.integers(-128, 127),
    st.binary(max_size=20) | st.from_regex(r"[\x00\x01]?\d{4}-\d\d-\d\dT?[\d:]*").map(str.encode),
)
def test_random_extensions_are_values_or_an_error_of_the_protocol(code, content):
    rows = decoded(msgspec.msgpack.encode([[msgspec.msgpack.Ext(code, content)]]))
    if code in {*range(1, 8), -1}:
        assert rows is None or len(rows[0]) == 1
    else:
        assert rows is None


def test_truncated_rows_are_an_error_of_the_protocol():
    content = CODEC.encode([("a", 2**70, Decimal(1), [None])])
    assert all(decoded(content[:end]) is None for end in range(len(content)))


def test_pickle_only_by_name():
    """Other objects travel between codecs that both allow it; the plain ones travel as ever."""
    open_codec = RowCodec(pickle=True)
    assert round_trip({1}, Order(2), [Plain.A], {Plain.A: 2**70}, codec=open_codec) == (
        {1},
        Order(2),
        [Plain.A],
        {Plain.A: 2**70},
    )
    with pytest.raises(ProtocolError, match="does not allow pickle"):
        CODEC.decode(open_codec.encode([(Order(1),)]))
    assert CODEC.decode(open_codec.encode([(1, Color.RED, [])])) == [(1, "red", [])]


def test_pickle_that_fails_says_so():
    open_codec = RowCodec(pickle=True)
    with pytest.raises(EncodingError, match="Hostile cannot be sent: pickle refuses it"):
        open_codec.encode([(Hostile(),)])
    with pytest.raises(ProtocolError, match="cannot be loaded"):
        open_codec.decode(open_codec.encode([(Bomb(),)]))
