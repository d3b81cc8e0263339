"""Keys in dicts: values in the form in which a dict finds what docs/keys.md calls equal.

Python's own equality does, but for two cases: NaN is no key twice, and a list is none at all.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Collection
from decimal import Decimal
from operator import ne
from typing import Any

from ardea.errors import EncodingError
from ardea.protocol.scalars import type_name, unwrap

AS_THEY_ARE = frozenset(
    {type(None), bool, int, str, bytes, uuid.UUID, dt.date, dt.datetime, dt.time, dt.timedelta}
)  # fmt: skip
"""Types of values that a dict finds again as they are."""
_UNLESS_NAN = AS_THEY_ARE | {float}


def are_keys(values: Collection[Any]) -> bool:
    """Whether a dict finds each of these values again as it is."""
    kinds = set(map(type, values))
    return kinds <= AS_THEY_ARE or (kinds <= _UNLESS_NAN and not any(map(ne, values, values)))


def is_key(value: Any) -> bool:
    """Whether a dict finds this value again as it is; of others :func:`as_key` may make another one."""
    kind = type(value)
    if kind is tuple:
        return all(map(is_key, value))
    return kind in AS_THEY_ARE or (kind is float and (value == value or value is math.nan))


def finds_all(key: Any) -> bool:
    """Whether a dict finds by this key what was written under any form of it; by a NaN it finds that object only."""
    kind = type(key)
    if kind is tuple:
        return all(map(finds_all, key))
    return kind in AS_THEY_ARE or (kind is float and key == key)


def as_key(value: Any) -> Any:
    """The value as part of a key: lists as tuples, and the one NaN.

    Raises:
        EncodingError: it cannot be part of a key.
    """
    if type(value) in AS_THEY_ARE:
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
