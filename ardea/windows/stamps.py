"""Stamps of many rows at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.arrow import arrow, values_of
from ardea.watermarks import MOST, Timestamps
from ardea.windows.kinds import MICROS

_PER_UNIT = {"s": MICROS, "ms": 1000, "us": 1}
_OF_NUMBERS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


def micros(stamps: Sequence[Any], unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Microseconds since 1970, and the places of those that are no stamps, where anything may stand."""
    kinds = set(map(type, stamps))
    if kinds == {int}:
        try:
            whole = np.array(stamps, dtype=np.int64)
        except OverflowError:
            return _one_by_one(stamps, unit)
        return _whole(whole, unit)
    if kinds == {float}:
        return _floating(np.array(stamps), unit)
    return _one_by_one(stamps, unit)


def micros_of_column(column: Any, unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """As :func:`micros`, of an Arrow array."""
    types = arrow().types
    if column.null_count or not (types.is_integer(column.type) or types.is_floating(column.type)):
        if types.is_timestamp(column.type) and not column.null_count:
            whole = column.cast(arrow().timestamp("us", column.type.tz), safe=False).cast(arrow().int64())
            return whole.to_numpy(zero_copy_only=False), np.array([], dtype=np.intp)
        return micros(values_of(column), unit)
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "f":
        return _floating(found, unit)
    if found.dtype == np.uint64 and np.any(found > np.iinfo(np.int64).max):
        return micros(found.tolist(), unit)
    return _whole(found, unit)


def _whole(whole: NDArray[Any], unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    whole = whole.astype(np.int64)
    per = _PER_UNIT.get(unit.unit)
    if per is None:  # nanoseconds
        return whole // 1000, np.array([], dtype=np.intp)
    most = MOST // per
    return np.clip(whole, -most, most) * per, np.flatnonzero((whole > most) | (whole < -most))


def _floating(numbers: NDArray[Any], unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    known, per = numbers.astype(np.float64), _OF_NUMBERS[unit.unit]
    bad = ~(np.abs(known) < MOST / per)
    known[bad] = 0.0
    return np.rint(known * per).astype(np.int64), np.flatnonzero(bad)


def _one_by_one(stamps: Sequence[Any], unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    found = np.zeros(len(stamps), dtype=np.int64)
    none = []
    per = _PER_UNIT.get(unit.unit)
    for place, stamp in enumerate(stamps):
        exact: float | None
        if type(stamp) is int:
            exact = stamp // 1000 if per is None else stamp * per
        else:
            seconds = unit.seconds(stamp)
            exact = None if seconds is None else seconds * MICROS
        if exact is None or not abs(exact) < MOST:
            none.append(place)
        else:
            found[place] = round(exact)
    return found, np.array(none, dtype=np.intp)
