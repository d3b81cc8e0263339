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
_NAT = np.iinfo(np.int64).min
_OF_NUMBERS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}


def micros(stamps: Sequence[Any], unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Microseconds since 1970, and the places of those that are no stamps, where anything may stand."""
    kinds = set(map(type, stamps))
    if kinds == {int}:
        try:
            whole = np.array(stamps, dtype=np.int64)
        except OverflowError:
            return _one_by_one(stamps, unit)
        return _whole(whole, unit.unit)
    if kinds == {float}:
        return _floating(np.array(stamps), unit)
    return _one_by_one(stamps, unit)


def micros_of_column(column: Any, unit: Timestamps) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """As :func:`micros`, of an Arrow array."""
    types = arrow().types
    if types.is_timestamp(column.type):
        return _times(column.to_numpy(zero_copy_only=False).view(np.int64), column.type.unit)
    if column.null_count or not (types.is_integer(column.type) or types.is_floating(column.type)):
        return micros(values_of(column), unit)
    found = column.to_numpy(zero_copy_only=False)
    if found.dtype.kind == "f":
        return _floating(found, unit)
    if found.dtype == np.uint64 and np.any(found > np.iinfo(np.int64).max):
        return micros(found.tolist(), unit)
    return _whole(found, unit.unit)


def _whole(whole: NDArray[Any], unit: str) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    whole = whole.astype(np.int64, copy=False)
    per = _PER_UNIT.get(unit)
    if per is None:  # nanoseconds
        return whole // 1000, np.array([], dtype=np.intp)
    most = MOST // per
    if whole.min(initial=0) >= -most and whole.max(initial=0) <= most:
        return whole * per, np.array([], dtype=np.intp)
    return np.clip(whole, -most, most) * per, np.flatnonzero((whole > most) | (whole < -most))


def _times(whole: NDArray[np.int64], unit: str) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Of Arrow's times as NumPy has them, where null is NaT."""
    found, none = _whole(whole, unit)
    return found, none if unit != "ns" else np.flatnonzero(whole == _NAT)


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
