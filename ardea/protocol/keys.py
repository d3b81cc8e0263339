"""Equal keys meet: one hash for equal values in every process, interpreter and life (docs/keys.md).

A key is encoded into tagged bytes that follow Python's equality, and xxh3 is taken of those.  Python's own
``hash`` is salted for each process.  The encoding is prefix-free, so fields one after another need no separator.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, TypeVar

from xxhash import xxh3_64_intdigest

from ardea.errors import EncodingError
from ardea.protocol.scalars import type_name, unwrap

ALGORITHM = "xxh3-1"
"""Name of hash and encoding together; processes with different ones must not route to each other."""

MAX_DEPTH = 100
"""Lists within lists that a key or a value may have."""

CACHE_ENTRIES = 100_000
CACHE_KEY_BYTES = 256

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 -- the origin of naive times
EPOCH_UTC = EPOCH.replace(tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)

T = TypeVar("T")

_SIZED = struct.Struct(">cI")
_LONG = struct.Struct(">cq")
_DATE = struct.Struct(">cI")
_DELTA = struct.Struct(">ciq")
_NUMBER = struct.Struct(">cqqI")


def key_hash(values: Sequence[Any]) -> int:
    """Unsigned 64-bit hash of the key that these field values form together.

    Raises:
        EncodingError: a value cannot be part of a key (dict, set, objects of other types).
    """
    return xxh3_64_intdigest(encode_key(values))


def partition(hashed: int, n: int) -> int:
    """The place of a hash among ``n`` targets: the remainder."""
    return hashed % n


def encode_key(values: Sequence[Any]) -> bytes:
    """The canonical bytes of the key that these field values form together.

    Raises:
        EncodingError: as for :func:`key_hash`.
    """
    return b"".join([_encode(value, 0) for value in values])


class KeyCache(dict[Any, T]):
    """Key -> what ``place`` makes of its hash, remembered for up to 100,000 keys.

    With ``single`` the keys are bare field values, else tuples of them.  ``cache[key]`` runs at the speed of a dict;
    keys that a dict cannot hold (lists) go through :meth:`find`.
    """

    def __init__(self, place: Callable[[int], T], *, single: bool) -> None:
        super().__init__()
        self._place = place
        self._single = single

    def __missing__(self, key: Any) -> T:
        encoded = self._encode(key)
        placed = self._place(xxh3_64_intdigest(encoded))
        if len(encoded) <= CACHE_KEY_BYTES and _collapses_rightly(key):
            if len(self) >= CACHE_ENTRIES:
                self.clear()
            self[key] = placed
        return placed

    def find(self, key: Any) -> T:
        """``self[key]``, for keys that may be unhashable."""
        try:
            return self[key]
        except (TypeError, ValueError):  # a list, or a memoryview that can be written
            return self._place(xxh3_64_intdigest(self._encode(key)))

    def find_all(self, keys: Callable[[], Iterable[Any]]) -> list[T]:
        """What belongs to each key; ``keys`` starts the iteration, a second time if one is unhashable."""
        try:
            return list(map(self.__getitem__, keys()))
        except (TypeError, ValueError):
            return [self.find(key) for key in keys()]

    def _encode(self, key: Any) -> bytes:
        return encode_key((key,) if self._single else key)


_EXACT = frozenset(
    {type(None), bool, int, float, str, bytes, Decimal, uuid.UUID, dt.date, dt.datetime, dt.time, dt.timedelta}
)


def _collapses_rightly(key: Any) -> bool:
    """Whether all that a dict takes for ``key`` has its encoding too.

    Not so for zoned times (equal by wall clock within a zone, the encoding is the instant) and for types that
    compare in ways of their own; NaN is never found again and would only fill the cache.
    """
    if type(key) is tuple:
        return all(map(_collapses_rightly, key))
    if type(key) not in _EXACT or key != key:
        return False
    return type(getattr(key, "tzinfo", None)) in (type(None), dt.timezone)


def _encode(value: Any, depth: int) -> bytes:
    if depth > MAX_DEPTH:
        raise EncodingError(f"a key is nested more than {MAX_DEPTH} deep", hint="Group by a flat field.")
    encoder = _BY_TYPE.get(type(value))
    if encoder is not None:
        return encoder(value)
    if isinstance(value, list | tuple):
        return _SIZED.pack(b"(", len(value)) + b"".join([_encode(item, depth + 1) for item in value])
    plain = unwrap(value)
    if plain is not value:
        return _encode(plain, depth)
    for kind, inherited in _BY_BASE:
        if isinstance(value, kind):
            return inherited(value)
    raise EncodingError(
        f"a value of type {type_name(value)} cannot be part of a key",
        hint="Group by a number, text, bytes, a time, a UUID, None, or a list of those.",
    )


def _integer(value: int) -> bytes:
    if -(1 << 63) <= value < 1 << 63:
        return _LONG.pack(b"i", value)
    return _number(value, 0, 0)


def _float(value: float) -> bytes:
    if value.is_integer():
        return _integer(int(value))
    if not math.isfinite(value):
        return _not_finite(value)
    numerator, denominator = value.as_integer_ratio()
    return _number(numerator, 1 - denominator.bit_length(), 0)


def _decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return b"?" if value.is_nan() else _not_finite(float(value))
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return _number(int(Decimal((sign, digits, 0))), exponent, exponent)


def _not_finite(value: float) -> bytes:
    return b"+" if value > 0 else b"-" if value < 0 else b"?"


def _number(mantissa: int, twos: int, fives: int) -> bytes:
    """``mantissa * 2**twos * 5**fives``, exactly, and small for ``Decimal("1e999999")`` too.

    Every finite number that Python compares by value has one such form with a mantissa free of 2 and 5.
    """
    if not mantissa:
        return _LONG.pack(b"i", 0)
    zeros = (mantissa & -mantissa).bit_length() - 1
    mantissa >>= zeros
    twos += zeros
    mantissa, divided = _without_fives(mantissa)
    fives += divided
    if 0 <= twos < 64 and 0 <= fives < 28 and mantissa.bit_length() < 64:
        whole = mantissa * 2**twos * 5**fives
        if -(1 << 63) <= whole < 1 << 63:
            return _LONG.pack(b"i", whole)
    size = mantissa.bit_length() // 8 + 1
    return _NUMBER.pack(b"q", twos, fives, size) + mantissa.to_bytes(size, "big", signed=True)


def _without_fives(mantissa: int) -> tuple[int, int]:
    """``mantissa`` without its factors 5, and their number; by squaring, so that huge integers stay quick."""
    count = 0
    powers = [(5, 1)]
    while mantissa % powers[-1][0] == 0:
        power, exponent = powers[-1]
        mantissa //= power
        count += exponent
        powers.append((power * power, 2 * exponent))
    for power, exponent in reversed(powers):
        if mantissa % power == 0:
            mantissa //= power
            count += exponent
    return mantissa, count


def _text(value: str) -> bytes:
    try:
        encoded = value.encode()
    except UnicodeEncodeError as error:
        raise EncodingError(f"a str in a key is not valid Unicode: {error}", hint="Send it as bytes.") from error
    return _SIZED.pack(b"s", len(encoded)) + encoded


def _binary(value: bytes | bytearray | memoryview) -> bytes:
    content = bytes(value)
    return _SIZED.pack(b"b", len(content)) + content


def _datetime(value: dt.datetime) -> bytes:
    if value.utcoffset() is None:
        return _LONG.pack(b"l", (value.replace(tzinfo=None) - EPOCH) // MICROSECOND)
    return _LONG.pack(b"z", (value - EPOCH_UTC) // MICROSECOND)


def _time(value: dt.time) -> bytes:
    since_midnight = dt.timedelta(
        hours=value.hour, minutes=value.minute, seconds=value.second, microseconds=value.microsecond
    )
    offset = value.utcoffset()
    if offset is None:
        return _LONG.pack(b"h", since_midnight // MICROSECOND)
    return _LONG.pack(b"H", (since_midnight - offset) // MICROSECOND)


def _date(value: dt.date) -> bytes:
    return _DATE.pack(b"d", value.toordinal())


def _delta(value: dt.timedelta) -> bytes:
    return _DELTA.pack(b"t", value.days, value.seconds * 1_000_000 + value.microseconds)


_BY_TYPE: dict[type, Callable[[Any], bytes]] = {
    type(None): lambda _: b"N",
    bool: _integer,
    int: _integer,
    float: _float,
    Decimal: _decimal,
    str: _text,
    bytes: _binary,
    bytearray: _binary,
    memoryview: _binary,
    uuid.UUID: lambda value: b"u" + value.bytes,
    dt.datetime: _datetime,
    dt.date: _date,
    dt.time: _time,
    dt.timedelta: _delta,
}
# Subclasses of these compare like their base, the members of a str or int Enum among them.  Subclasses of the time
# types do not (pandas' have nanoseconds).
_BY_BASE: tuple[tuple[type, Callable[[Any], bytes]], ...] = tuple(
    (kind, _BY_TYPE[kind]) for kind in (str, int, float, bytes, bytearray, Decimal, uuid.UUID)
)
