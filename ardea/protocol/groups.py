"""Rows of an Arrow column that belong together, aggregated: as their values would be, whatever Arrow can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.arrow import arrow, values_of
from ardea.protocol.extremes import greatest, least

OF_LISTS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "sum": sum,
    "count": len,
    "min": partial(reduce, least),
    "max": partial(reduce, greatest),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}
"""Arrow's aggregations, of values none of which is None."""


def aggregated(places: NDArray[np.intp], total: int, column: Any, by: str) -> list[Any]:
    """One of OF_LISTS of each group; None where it has nothing but nulls.

    Args:
        places: which of the groups each row is in.
        total: how many groups there are.
        column: an Arrow array.
        by: its name.
    """
    library = arrow()
    if by == "sum" and _may_overflow(column):  # Arrow would not say so
        return _one_by_one(places, total, column, by)
    table = library.table({"group": places, "value": column})
    try:
        grouped = table.group_by("group", use_threads=False).aggregate([("value", by)])
    except library.ArrowNotImplementedError:  # of half floats, lists, dictionaries
        return _one_by_one(places, total, column, by)
    found: list[Any] = [None] * total
    values = values_of(grouped[f"value_{by}"].combine_chunks())
    for place, value in zip(grouped["group"].to_pylist(), values, strict=True):
        found[place] = value
    return [each or None for each in found] if by == "count" else found


def _one_by_one(places: NDArray[np.intp], total: int, column: Any, by: str) -> list[Any]:
    groups: list[list[Any]] = [[] for _ in range(total)]
    for place, value in zip(places.tolist(), values_of(column), strict=True):
        if value is not None:
            groups[place].append(value)
    return [OF_LISTS[by](group) if group else None for group in groups]


def _may_overflow(column: Any) -> bool:
    """Whether a sum of these whole numbers or decimals may be larger than what Arrow adds up in."""
    kind = column.type
    types = arrow().types
    if types.is_integer(kind):
        most = (1 << 63) - 1 if types.is_signed_integer(kind) else (1 << 64) - 1
    elif types.is_decimal(kind):
        most = 10 ** ((76 if types.is_decimal256(kind) else 38) - kind.scale) - 1
    else:
        return False
    bounds = arrow().compute.min_max(column).as_py()
    return bounds["max"] is not None and max(abs(bounds["min"]), abs(bounds["max"])) * len(column) > most
