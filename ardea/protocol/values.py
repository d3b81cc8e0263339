"""Rows on the wire: one msgpack array of arrays, with extensions for what msgpack has no type for (docs/keys.md).

Rows arrive as tuples, lists and tuples inside them as lists (in the keys of a dict, as tuples).  Every other value
arrives equal to what was sent, with a plain type: a defaultdict as dict, a NumPy or Arrow scalar and the member of a
str or int Enum as its Python value.  What would arrive as something else (set, dataclass, ...) is refused.
"""

from __future__ import annotations

import datetime as dt
import pickle as pickling
import struct
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from ardea.errors import EncodingError, ProtocolError
from ardea.protocol.headed import HeadedRows
from ardea.protocol.keys import MAX_DEPTH
from ardea.protocol.scalars import type_name, unwrap

NO_TYPE = "neither msgpack nor one of Ardea's extensions has a type for it"
"""Why a value of an unknown class is refused."""
INTEGER, DECIMAL, LOCAL_DATETIME, DATE, TIME, TIMEDELTA, UUID, PICKLE = range(1, 9)

Row = Sequence[Any]


class Refusal(NamedTuple):
    """The first value of some rows that cannot be sent: where it is (both from 0), its type, and why not."""

    row: int
    field: int
    type: str
    reason: str


class RowCodec:
    """Encodes and decodes rows.  ``pickle`` allows objects of any type, both ways."""

    def __init__(self, pickle: bool = False) -> None:
        self._pickle = pickle
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_to_msgspec)
        self._decoders: dict[int | None, msgspec.msgpack.Decoder[list[tuple[Any, ...]]]] = {}

    def encode(self, rows: Sequence[Row], *, plain: bool = False) -> bytes:
        """The rows (lists or tuples) as one msgpack array; ``plain``: :func:`are_plain` said so.

        Raises:
            EncodingError: a value cannot be sent; :meth:`explain` says which.
        """
        # msgspec would turn a Decimal, set or dataclass into text or a list without a word, so only what is known.
        if plain:
            try:
                return self._encoder.encode(rows)
            except (OverflowError, UnicodeEncodeError):
                pass  # an int beyond 64 bits, which has an extension, or text that is refused below
        try:
            return self._encoder.encode([[self._plain(value, 0) for value in row] for row in rows])
        except (_Refused, UnicodeEncodeError) as error:
            refusal = self.explain(rows)
            raise EncodingError(
                f"row {refusal.row}, field {refusal.field}: a {refusal.type} cannot be sent: {refusal.reason}",
                hint="Emit values of the types in docs/keys.md, in lists, tuples and dicts.",
            ) from error

    def decode(self, buffer: bytes | bytearray | memoryview, fields: int | None = None) -> list[tuple[Any, ...]]:
        """The rows that :meth:`encode` was given; ``fields``: each has so many values.

        Raises:
            ProtocolError: ``MALFORMED_ROWS``, these are not bytes that :meth:`encode` writes.
        """
        decoder = self._decoders.get(fields)
        if decoder is None:
            row: Any = tuple if fields is None else tuple[(Any,) * fields]  # type: ignore[misc]
            decoder = self._decoders[fields] = msgspec.msgpack.Decoder(list[row], ext_hook=self._load)
        try:
            return decoder.decode(buffer)
        except (ValueError, TypeError, OverflowError, ArithmeticError, RecursionError, struct.error) as error:
            raise ProtocolError(
                "MALFORMED_ROWS",
                f"{len(buffer)} bytes are not rows: {error}",
                hint="Run the same version of Ardea in every container.",
            ) from error

    def decode_headed(
        self, head: bytes, buffer: bytes | bytearray | memoryview, fields: int
    ) -> list[tuple[Any, ...]] | HeadedRows:
        """The rows behind a head that :meth:`encode` was given as a row of its own; ``fields``: with it.

        Raises:
            ProtocolError: as for :meth:`decode`.
        """
        if not head:
            return self.decode(buffer, fields)
        heads = self.decode(head)
        if len(heads) != 1 or len(heads[0]) > fields:
            raise ProtocolError("MALFORMED_ROWS", f"{len(head)} bytes are not the head of rows of {fields} values")
        return HeadedRows(heads[0], self.decode(buffer, fields - len(heads[0])))

    def explain(self, rows: Sequence[Row]) -> Refusal:
        """The first value for which :meth:`encode` refused these rows.

        Raises:
            LookupError: all of them can be sent.
        """
        for row_index, row in enumerate(rows):
            for field_index, value in enumerate(row):
                try:
                    self._encoder.encode(self._plain(value, 0))
                except _Refused as refused:
                    return Refusal(row_index, field_index, refused.type, refused.reason)
                except UnicodeEncodeError as error:
                    return Refusal(row_index, field_index, type_name(value), f"its text is not valid Unicode ({error})")
        raise LookupError("every value can be sent")

    def _plain(self, value: Any, depth: int) -> Any:
        """``value`` in types that msgspec writes as what they are."""
        convert = _BY_TYPE.get(type(value))
        if convert is not None:
            return convert(value)
        if depth > MAX_DEPTH:
            raise _Refused(type_name(value), f"it is nested more than {MAX_DEPTH} deep, or contains itself")
        if isinstance(value, list):
            return [self._plain(item, depth + 1) for item in value]
        if isinstance(value, tuple):
            return tuple([self._plain(item, depth + 1) for item in value])
        if isinstance(value, dict):
            return {self._plain(k, depth + 1): self._plain(v, depth + 1) for k, v in value.items()}
        try:
            plain = unwrap(value)
        except EncodingError as error:
            raise _Refused(type_name(value), error.message) from error
        if plain is not value:
            return self._plain(plain, depth + 1)
        for base, narrow in _BY_BASE:
            if isinstance(value, base):
                return _BY_TYPE[base](narrow(value))
        if not self._pickle:
            raise _Refused(type_name(value), NO_TYPE)
        try:
            return _Extension(PICKLE, pickling.dumps(value, protocol=5))
        except Exception as error:  # user code runs here and raises what it likes
            raise _Refused(type_name(value), f"pickle refuses it ({error})") from error

    def _load(self, code: int, data: memoryview) -> Any:
        """The object that an extension stands for; msgspec calls this."""
        if code != PICKLE:
            try:
                load = _LOADERS[code]
            except KeyError:
                raise ValueError(f"unknown extension {code}") from None
            return load(bytes(data))
        if not self._pickle:
            raise ValueError("a pickled object in a topology that does not allow pickle")
        try:
            return pickling.loads(data)  # noqa: S301 -- the topology asked for it by name
        except Exception as error:
            raise ValueError(f"a pickled object cannot be loaded ({error})") from error


def are_plain(rows: Sequence[Any], fields: int) -> bool:
    """Whether these are lists or tuples of so many values, of types that msgspec writes as they are.

    Every row passes here, so it works by columns, of which most have one type.
    """
    if not rows:
        return True
    shapes = list(map(type, rows))
    tuples = shapes.count(tuple)
    if tuples < len(rows) and tuples + shapes.count(list) < len(rows):
        return False
    if fields == 1:
        try:
            columns: Iterable[list[type]] = ([type(value) for (value,) in rows],)
        except ValueError:
            return False
    elif list(map(len, rows)).count(fields) < len(rows):
        return False
    else:
        columns = ([type(row[field]) for row in rows] for field in range(fields))
    for kinds in columns:
        one = kinds.count(kinds[0]) == len(kinds)
        if not (kinds[0] in _PLAIN if one else _PLAIN.issuperset(kinds)):
            return False
    return True


class _Refused(Exception):  # noqa: N818 -- becomes an EncodingError with its place
    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.type = kind
        self.reason = reason


class _Extension:
    """An extension yet to be written.  Unlike msgspec's own Ext it can be the key of a dict."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def _to_msgspec(value: _Extension) -> msgspec.msgpack.Ext:
    return msgspec.msgpack.Ext(value.code, value.data)


def _as_is(value: Any) -> Any:
    return value


def _integer(value: int) -> int | _Extension:
    if -(1 << 63) <= value < 1 << 64:
        return value
    return _Extension(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def _datetime(value: dt.datetime) -> dt.datetime | _Extension:
    if value.utcoffset() is None:
        return _Extension(LOCAL_DATETIME, bytes([value.fold]) + value.replace(tzinfo=None).isoformat().encode())
    try:
        return value.astimezone(dt.UTC)
    except OverflowError as error:
        raise _Refused("datetime.datetime", "in UTC it is outside the years 1 to 9999") from error


def _time(value: dt.time) -> _Extension:
    plain = value.replace(tzinfo=None) if value.utcoffset() is None else value
    return _Extension(TIME, bytes([value.fold]) + plain.isoformat().encode())


_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_DELTA = struct.Struct(">iii")

_BY_TYPE: dict[type, Callable[[Any], Any]] = {
    **dict.fromkeys(_PLAIN, _as_is),
    int: _integer,
    bytearray: bytes,
    memoryview: bytes,
    Decimal: lambda value: _Extension(DECIMAL, str(value).encode()),
    dt.datetime: _datetime,
    dt.date: lambda value: _Extension(DATE, value.toordinal().to_bytes(4, "big")),
    dt.time: _time,
    dt.timedelta: lambda value: _Extension(TIMEDELTA, _DELTA.pack(value.days, value.seconds, value.microseconds)),
    uuid.UUID: lambda value: _Extension(UUID, value.bytes),
}
# Base class and how to get a plain one out of a subclass: members of str and int Enums above all.
_BY_BASE: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes),
    (bytearray, bytes),
)
_LOADERS: dict[int, Callable[[bytes], Any]] = {
    INTEGER: lambda data: int.from_bytes(data, "big", signed=True),
    DECIMAL: lambda data: Decimal(data.decode()),
    LOCAL_DATETIME: lambda data: dt.datetime.fromisoformat(data[1:].decode()).replace(fold=data[0]),
    DATE: lambda data: dt.date.fromordinal(int.from_bytes(data, "big")),
    TIME: lambda data: dt.time.fromisoformat(data[1:].decode()).replace(fold=data[0]),
    TIMEDELTA: lambda data: dt.timedelta(*_DELTA.unpack(data)),
    UUID: lambda data: uuid.UUID(bytes=data),
}
