"""Keys in dicts: values in the form in which a dict finds what docs/keys.md calls equal.

Python's own equality does, but for two cases: NaN is no key twice, and a list is none at all.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import chain
from operator import ne
from typing import Any

from ardea.errors import EncodingError
from ardea.protocol.scalars import type_name, unwrap

_AS_THEY_ARE = frozenset(
    {type(None), bool, int, str, bytes, uuid.UUID, dt.date, dt.datetime, dt.time, dt.timedelta}
)  # fmt: skip
_UNLESS_NAN = _AS_THEY_ARE | {float}


def are_keys(values: Collection[Any]) -> bool:
    """Whether a dict finds each of these values again as it is."""
    kinds = set(map(type, values))
    return kinds <= _AS_THEY_ARE or (kinds <= _UNLESS_NAN and not any(map(ne, values, values)))


def as_key(value: Any) -> Any:
    """The value as part of a key: lists as tuples, and the one NaN.

    Raises:
        EncodingError: it cannot be part of a key.
    """
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, list | tuple):
        return tuple([as_key(item) for item in value])
    plain = unwrap(value)
    if isinstance(plain, bytearray | memoryview):
        return bytes(plain)
    if plain.is_nan() if isinstance(plain, Decimal) else isinstance(plain, float) and math.isnan(plain):
        return math.nan  # always this object, which a dict finds by its identity
    try:
        hash(plain)
    except TypeError:
        raise EncodingError(
            f"a value of type {type_name(value)} cannot be part of a key",
            hint="Group by a number, text, bytes, a time, a UUID, None, or a list of those.",
        ) from None
    return plain


def as_keys(keys: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """The same of whole keys, each of several values."""
    if are_keys(list(chain.from_iterable(keys))):
        return keys
    return [tuple([as_key(value) for value in key]) for key in keys]


def keys_in(rows: Iterable[Sequence[Any]], places: Sequence[int]) -> Sequence[tuple[Any, ...]]:
    """The key of each row, whose values stand in these places."""
    return as_keys([tuple([row[place] for place in places]) for row in rows])
