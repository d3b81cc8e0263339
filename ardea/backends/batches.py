"""Keyed state of many rows at once: what is done in Python is done for each distinct key, not for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ardea.errors import UserError
from ardea.protocol.arrow import arrow, values_of
from ardea.protocol.column_keys import distinct_rows
from ardea.protocol.dict_keys import are_keys, as_key
from ardea.protocol.extremes import greatest, least
from ardea.protocol.groups import OF_LISTS, aggregated

if TYPE_CHECKING:
    from ardea.backends.memory import KeyedTable as Table

Fold: TypeAlias = Literal["sum", "count", "min", "max"] | Callable[[Any, Any], Any]
_TOGETHER: dict[str, Callable[[Any, Any], Any]] = {"sum": add, "count": add, "min": least, "max": greatest}


class Distinct(NamedTuple):
    """The keys of some rows, each once, in the order in which they come; ``places``: which of them each row has."""

    keys: list[Any]
    places: NDArray[np.intp]


def get_many(table: Table, keys: Any) -> Any:
    """See :meth:`ardea.backends.memory.KeyedTable.get_many`, as for all of these."""
    found = _checked(table, keys)
    values = [table[key] for key in found.keys]
    if not _is_arrow(keys):
        return [values[place] for place in found.places]
    library = arrow()
    try:
        return library.array(values).take(library.array(found.places))
    except (
        library.ArrowInvalid,
        library.ArrowTypeError,
        library.ArrowNotImplementedError,
        OverflowError,
        UnicodeEncodeError,
    ) as error:
        raise UserError(
            f"state {table.lower.name!r}: Arrow has no type for these values: {error}",
            hint="Give the keys as a list, and get a list: get_many(keys.to_pylist()).",
        ) from error


def put_many(table: Table, keys: Any, values: Any) -> None:
    """Of several rows with one key the last."""
    found = _checked(table, keys, values)
    last = np.empty(len(found.keys), dtype=np.intp)
    last[found.places] = np.arange(len(found.places))
    if _is_arrow(values):
        chosen = values_of(_whole(values).take(arrow().array(last)))
    else:
        chosen = [values[place] for place in last]
    table.update(zip(found.keys, chosen, strict=True))


def fold(table: Table, keys: Any, values: Any, fn: Fold) -> dict[Any, Any]:
    """Returns the new values, by key."""
    if not callable(fn) and fn not in _TOGETHER:
        raise UserError(
            f"state {table.lower.name!r}: fold() by {fn!r}", hint=f"Give {', '.join(_TOGETHER)} or a function."
        )
    if values is None and fn != "count":
        raise UserError(f"state {table.lower.name!r}: fold() without values can only count")
    found = _checked(table, keys, values)
    if callable(fn):
        for key, part in zip(found.keys, _parts(found, values), strict=True):
            table[key] = fn(table[key], part)
        return {key: table[key] for key in found.keys}
    for key, part in zip(found.keys, _aggregated(found, values, fn), strict=True):
        if part is not None:
            current = table[key] if fn in ("sum", "count") else table.get(key)
            table[key] = part if current is None else _TOGETHER[fn](current, part)
    return {key: table[key] for key in found.keys}


def _checked(table: Table, keys: Any, values: Any = None) -> Distinct:
    found = _distinct(keys)
    if values is not None and len(values) != len(found.places):
        raise UserError(f"state {table.lower.name!r}: {len(found.places)} keys and {len(values)} values")
    table.lower.check(found.keys)
    table.put_right()
    return found


def _distinct(keys: Any) -> Distinct:
    if isinstance(keys, tuple):
        rows, places = distinct_rows([_whole(column) for column in keys])
    elif _is_arrow(keys):
        rows, places = distinct_rows([_whole(keys)])
        rows = [row[0] for row in rows]
    else:
        rows, places = list(keys), None
    if not are_keys(rows):
        rows = [as_key(key) for key in rows]
    order: dict[Any, int] = {}
    numbers = np.array([order.setdefault(key, len(order)) for key in rows], dtype=np.intp)
    return Distinct(list(order), numbers if places is None else numbers[places])


def _aggregated(found: Distinct, values: Any, fn: str) -> Iterable[Any]:
    """Of the values of each key; None: it has none but nulls."""
    if values is None:
        return list(np.bincount(found.places, minlength=len(found.keys)).tolist())
    if not _is_arrow(values):
        return _of_lists(_parts(found, values), fn)
    return aggregated(found.places, len(found.keys), _whole(values), fn)


def _of_lists(parts: Iterable[list[Any]], fn: str) -> list[Any]:
    known = ([value for value in part if value is not None] for part in parts)
    return [OF_LISTS[fn](part) if part else None for part in known]


def _parts(found: Distinct, values: Any) -> Iterable[Any]:
    """The values of each key, in their order."""
    order = np.argsort(found.places, kind="stable")
    ends = np.cumsum(np.bincount(found.places, minlength=len(found.keys)))
    starts = np.concatenate(([0], ends[:-1])) if len(ends) else ends
    if _is_arrow(values):
        ordered = _whole(values).take(arrow().array(order))
        return (ordered.slice(start, end - start) for start, end in zip(starts, ends, strict=True))
    arranged = [values[place] for place in order]
    return (arranged[start:end] for start, end in zip(starts, ends, strict=True))


def _is_arrow(values: Any) -> bool:
    if isinstance(values, tuple):
        return bool(values) and all(map(_is_arrow, values))
    return type(values).__module__.partition(".")[0] == "pyarrow"


def _whole(column: Any) -> Any:
    """A chunked array as one."""
    library = arrow()
    return column.combine_chunks() if isinstance(column, library.ChunkedArray) else column
