"""The hashes of keys that travel as columns, equal to those of the same keys in rows (docs/keys.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.arrow import arrow, rows_of
from ardea.protocol.column_types import without_views
from ardea.protocol.ids import U64
from ardea.protocol.keys import KeyCache, key_hash

if TYPE_CHECKING:
    import pyarrow as pa

_NULL = key_hash([None])
_INTEGER, _LOCAL, _ZONED = (np.uint64(ord(tag)) for tag in "ilz")

# XXH3 for 9 to 16 bytes, with seed 0: XORs of words of its secret, the length of what is hashed, a prime.
_FLIP_LOW = np.uint64(0x1F67B3B7A4A44072 ^ 0x78E5C0CC4EE679CB)
_FLIP_HIGH = np.uint64(0x2172FFCC7DD05A82 ^ 0x8E2443F7744608B8)
_LENGTH = np.uint64(9)
_PRIME = np.uint64(0x165667919E3779F9)
_LOW_HALF = np.uint64(0xFFFFFFFF)
_8, _32, _37 = np.uint64(8), np.uint64(32), np.uint64(37)


class ColumnKeys:
    """Hashes keys of one stream; remembers those of keys that were hashed one by one."""

    def __init__(self) -> None:
        self._single: KeyCache[int] = KeyCache(int, single=True)
        self._several: KeyCache[int] = KeyCache(int, single=False)

    def hashes(self, columns: Sequence[pa.Array]) -> U64:
        """:func:`ardea.protocol.keys.key_hash` of each row of these columns.

        Raises:
            EncodingError: a value cannot be part of a key.
        """
        if len(columns) == 1:
            hashed = _at_once(columns[0])
            if hashed is not None:
                return hashed
        try:
            distinct, places = distinct_rows(columns)
        except (arrow().ArrowInvalid, arrow().ArrowNotImplementedError):  # of a type that Arrow cannot tell apart
            distinct, places = _rows(columns), None
        cache = self._single if len(columns) == 1 else self._several
        keys = [row[0] for row in distinct] if len(columns) == 1 else distinct
        found = np.array(cache.find_all(lambda: keys), dtype=np.uint64)
        return found if places is None else found[places]


def _at_once(column: pa.Array) -> U64 | None:
    """Of a column whose keys all have one form of nine bytes; None: it is not one."""
    library = arrow()
    kind, types = column.type, library.types
    if types.is_boolean(kind) or (types.is_integer(kind) and kind != library.uint64()):
        tag, values = _INTEGER, column.cast(library.int64())
    elif types.is_timestamp(kind) and kind.unit != "ns":
        tag = _LOCAL if kind.tz is None else _ZONED
        try:
            values = column.cast(library.timestamp("us", kind.tz)).view(library.int64())
        except library.ArrowInvalid:  # beyond what microseconds can count
            return None
    else:
        return None
    valid = None
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        values = values.fill_null(0)
    hashed = _hash_words(tag, values.to_numpy(zero_copy_only=False).view(np.uint64))
    return hashed if valid is None else np.where(valid, hashed, np.uint64(_NULL))


def _hash_words(tag: np.uint64, words: U64) -> U64:
    """xxh3_64 of a tag and eight bytes, big-endian."""
    swapped = words.byteswap()
    low = ((swapped << _8) | tag) ^ _FLIP_LOW
    high = swapped ^ _FLIP_HIGH
    mixed = low.byteswap() + high + _folded_product(low, high) + _LENGTH
    mixed ^= mixed >> _37
    mixed *= _PRIME
    mixed ^= mixed >> _32
    return mixed


def _folded_product(a: U64, b: U64) -> U64:
    """Both halves of the 128 bits of ``a * b``, XORed."""
    a_low, a_high, b_low, b_high = a & _LOW_HALF, a >> _32, b & _LOW_HALF, b >> _32
    lows, cross = a_low * b_low, a_high * b_low
    middle = (lows >> _32) + (cross & _LOW_HALF) + a_low * b_high
    upper = a_high * b_high + (cross >> _32) + (middle >> _32)
    lower = (middle << _32) | (lows & _LOW_HALF)
    product: U64 = upper ^ lower
    return product


def distinct_rows(columns: Sequence[pa.Array]) -> tuple[list[tuple[Any, ...]], NDArray[np.intp] | None]:
    """Distinct keys, as rows, and which of them each row of these columns has; None: all rows, in order."""
    library = arrow()
    codes, sizes = [], []
    for column in columns:
        column = without_views(column)  # of these, Arrow's encoding makes an empty text of a null
        if library.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if library.types.is_nested(column.type):  # Arrow cannot tell equal ones
            return _rows(columns), None
        encoded = column.dictionary_encode(null_encoding="encode")
        codes.append(encoded.indices.to_numpy().astype(np.intp))
        sizes.append(len(encoded.dictionary))
    if len(columns) == 1:
        return rows_of(library.RecordBatch.from_arrays([encoded.dictionary], names=["key"])), codes[0]
    combined, number = codes[0], sizes[0]
    for code, size in zip(codes[1:], sizes[1:], strict=True):
        combined = combined * size + code
        values, combined = np.unique(combined, return_inverse=True)
        number = len(values)
    firsts = np.empty(number, dtype=np.intp)
    firsts[combined[::-1]] = np.arange(len(combined) - 1, -1, -1)
    taken = [column.take(library.array(firsts)) for column in columns]
    return _rows(taken), combined


def _rows(columns: Sequence[pa.Array]) -> list[tuple[Any, ...]]:
    return rows_of(arrow().RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))]))
