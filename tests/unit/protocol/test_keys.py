"""Equal keys meet, unequal keys differ: the canonical encoding, its hash, and the cache in front of it."""

# ruff: noqa: DTZ001, DTZ901 -- times without a zone are among the keys

import datetime as dt
import enum
import itertools
import math
import os
import re
import subprocess
import sys
import uuid
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ardea.errors import EncodingError
from ardea.protocol import keys
from ardea.protocol.keys import KeyCache, encode_key, key_hash, partition

NAN = object()
EAST = dt.timezone(dt.timedelta(hours=5, minutes=45))


class Color(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Plain(enum.Enum):
    A = "red"


def normal(value):
    """``value`` such that Python's ``==`` says what docs/keys.md says."""
    if isinstance(value, np.datetime64 | np.timedelta64) and np.datetime_data(value.dtype)[0] == "ns":
        value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return tuple(map(normal, value))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, float | Decimal) and value != value:
        return NAN
    return value


POOL = [
    *[None, 0, 1, -1, True, False, 0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 0.25, 10, 5, 2, 20.0, 1e15, 10**15],
    *[Decimal(text) for text in ("0", "-0", "0e99", "1", "1.00", "0.5", "0.1", "0.25", "1e15", "1e22", "-2.50", "20")],
    *[2**63, -(2**63), -(2**63) - 1, 2**63 - 1, float(2**63), float(-(2**63)), Decimal(2**63), 2**64, 10**22, 1e22],
    *[10**400, Decimal(10**400), Decimal("1e400"), 5**200, Decimal(5**200), 5e-324, *map(Decimal, (0.1, 5e-324))],
    *[math.inf, -math.inf, math.nan, Decimal("inf"), Decimal("-inf"), Decimal("nan"), 1.7e308, int(1.7e308), -2.5],
    *["", "a", "1", "N", "ab", b"", b"a", bytearray(b"a"), memoryview(b"a"), b"1", "\0", b"\0", "é", "é".encode()],
    *[(), [], (1,), [1.0], ("a", "bc"), ("ab", "c"), ("abc",), (("a",), "bc"), ("a", ("bc",)), [[]], [None], ((), ())],
    *[dt.date(1970, 1, 1), dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.timedelta(0)],
    *[dt.datetime(1970, 1, 1, 5, 45, tzinfo=EAST), dt.datetime.min.replace(tzinfo=EAST)],
    *[dt.datetime.min, dt.datetime.max, dt.datetime.max.replace(tzinfo=dt.UTC)],
    *[dt.time(0), dt.time(5, 45, tzinfo=EAST), dt.time(0, tzinfo=dt.UTC), dt.time(0, tzinfo=ZoneInfo("Asia/Tokyo"))],
    *[dt.timedelta.max, dt.timedelta.min, dt.timedelta(microseconds=1), dt.timedelta(days=1), dt.timedelta(-1)],
    *[uuid.UUID(int=0), uuid.UUID(int=1), np.int64(1), np.float32(0.5), np.float32(0.1), np.bool_(True), np.str_("a")],
    *[np.bytes_(b"a"), np.float64("nan"), np.uint64(2**63), np.datetime64("1970-01-01"), np.timedelta64(1, "D")],
    *[np.datetime64("1970-01-01T00:00:00", "ns"), Color.RED, "red", Level.LOW],
]  # fmt: skip

zones = st.none() | st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
numbers = st.integers() | st.floats() | st.decimals(allow_nan=True).filter(lambda d: not d.is_snan())
variants = st.integers(-300, 300).flatmap(
    lambda n: st.sampled_from(
        [n, float(n), Decimal(n), n / 4, Decimal(n) / 4, np.int32(n), 10**30 * n, Decimal(f"{n}e30")]
    )
)
scalars = st.one_of(
    *[st.sampled_from(POOL), variants, numbers, st.text(max_size=3), st.binary(max_size=3), st.uuids(), st.dates()],
    *[st.datetimes(timezones=zones), st.times(timezones=zones), st.timedeltas(), st.booleans()],
)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple))


def test_the_pool_meets_as_python_says():
    """Each pair out of a hundred awkward values: the same bytes exactly if they are equal."""
    for a, b in itertools.combinations(POOL, 2):
        assert (encode_key([a]) == encode_key([b])) == (normal(a) == normal(b)), (a, b)


@given(values, values)
@example([("a", "bc")], [("ab", "c")])
@example([("a", "sb")], [("as", "b")])
@example([(b"a", b"bb")], [(b"ab", b"b")])
def test_equal_values_and_no_others_have_equal_bytes(a, b):
    assert (encode_key([a]) == encode_key([b])) == (normal(a) == normal(b))


@given(st.lists(values, max_size=3), st.lists(values, max_size=3))
def test_no_key_begins_another(a, b):
    """Fields follow one another without separators, so the bytes must tell where each ends."""
    first, second = encode_key(a), encode_key(b)
    if len(a) == len(b):
        assert (first == second) == (normal(a) == normal(b))
        assert first == second or not (second.startswith(first) or first.startswith(second))


@given(numbers, st.sampled_from([int, float, Decimal]))
def test_a_number_meets_itself_in_every_type_that_holds_it(number, kind):
    try:
        other = kind(number)
    except (ValueError, OverflowError):
        return
    if other == number:
        assert encode_key([other]) == encode_key([number])


def test_a_huge_number_stays_small():
    """An exponent is not written out: this would be a gigabyte of zeros."""
    assert len(encode_key([Decimal("-1e999999999")])) < 40
    assert len(encode_key([Decimal("1e-999999999")])) < 40
    assert len(encode_key([10**100_000])) < 40


@pytest.mark.parametrize(
    "value",
    [{}, {"a": 1}, set(), frozenset([1]), object(), Plain.A, 1j, Fraction(1, 2), np.arange(2), int, [1, {2}], ({},)],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", repr(value)),
)
def test_what_is_no_key_is_refused_by_type(value):
    offender = (
        next((item for item in value if isinstance(item, dict | set)), value)
        if isinstance(value, list | tuple)
        else value
    )
    with pytest.raises(EncodingError, match=type(offender).__qualname__):
        key_hash([value])


@pytest.mark.parametrize(
    "value",
    [
        *[
            np.longdouble(1.5),
            np.datetime64(1, "ns"),
            np.timedelta64(1, "ns"),
            np.timedelta64(3, "Y"),
            np.timedelta64(3),
        ],
        *[np.datetime64("20000-01-01"), pa.scalar(1, pa.timestamp("ns")), np.complex128(1j), "\ud800"],
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", repr(value)),
)
def test_scalars_without_a_python_value_are_refused(value):
    """Above all no bare count of nanoseconds instead of a time."""
    with pytest.raises(EncodingError):
        key_hash([value])


def test_a_list_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(EncodingError, match="deep"):
        key_hash([endless])


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        "a",
        b"a",
        None,
        True,
        Decimal("1.50"),
        dt.date(2020, 1, 1),
        ["b", "a"],
        dt.datetime(2020, 1, 1),
        dt.timedelta(1),
    ],
    ids=lambda value: re.sub(r" at 0x[0-9a-f]+", "", repr(value)),
)
def test_arrow_scalars_meet_their_python_values(value):
    assert encode_key([pa.scalar(value)]) == encode_key([value])


def test_every_process_agrees():
    """Whatever PYTHONHASHSEED is."""
    code = (
        "from ardea.protocol.keys import key_hash; import datetime, decimal\n"
        "print([key_hash([v]) for v in ('heron', b'heron', 1, 0.1, None, decimal.Decimal('0.1'), ('a', 1))])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    here = [key_hash([v]) for v in ("heron", b"heron", 1, 0.1, None, Decimal("0.1"), ("a", 1))]
    assert outputs == {f"{here}\n"}


def test_partition_spreads_evenly():
    """10,000 words over 7 tasks: no task more than a tenth off."""
    places = np.bincount([partition(key_hash([f"word{i}"]), 7) for i in range(10_000)], minlength=7)
    assert places.min() > 0.9 * 10_000 / 7
    assert places.max() < 1.1 * 10_000 / 7


@given(st.lists(values, max_size=20))
@example([1, np.timedelta64(1, "D")])  # which says that they are equal
def test_the_cache_changes_nothing(sample):
    """Whatever came before, a key's place is that of its hash."""
    cache = KeyCache(lambda hashed: hashed % 1009, single=True)
    expected = [key_hash([value]) % 1009 for value in sample]
    assert cache.find_all(lambda: iter(sample)) == expected
    assert cache.find_all(lambda: iter(sample)) == expected


@given(st.lists(st.tuples(values, values), max_size=20))
def test_the_cache_of_tuples_changes_nothing(sample):
    cache = KeyCache(lambda hashed: hashed % 1009, single=False)
    assert cache.find_all(lambda: sample * 2) == [key_hash(key) % 1009 for key in sample * 2]


def test_a_known_key_is_not_hashed_again():
    placed = []
    cache = KeyCache(lambda hashed: placed.append(hashed) or len(placed), single=True)
    assert [cache[1], cache[1.0], cache[True], cache[Decimal(1)], cache["1"]] == [1, 1, 1, 1, 2]


def test_what_would_lie_in_a_cache_is_not_kept():
    """NaN, long keys, zoned times that compare by the wall clock, and types that compare in their own way."""
    zone = ZoneInfo("Europe/Berlin")
    early = dt.datetime(2023, 10, 29, 2, 30, tzinfo=zone)
    cache = KeyCache(lambda hashed: hashed, single=True)
    for key in (
        math.nan,
        (1, math.nan),
        "x" * 1000,
        early,
        (early,),
        np.datetime64("2020-01-01"),
        [1],
        bytearray(b"a"),
    ):
        assert cache.find(key) == key_hash([key])
        assert not cache
    late = early.replace(fold=1)
    assert late == early
    assert cache.find(late) != cache.find(early)
    assert cache.find(late) == cache.find(late.astimezone(dt.UTC))


def test_the_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(keys, "CACHE_ENTRIES", 10)
    cache = KeyCache(lambda hashed: hashed % 3, single=True)
    sizes = {len(cache) for i in range(100) if cache[i] == key_hash([i]) % 3}
    assert max(sizes) == 10
