"""Rows as user functions see them: a tuple of values whose fields have names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, ClassVar, TypeAlias

from ardea.errors import TopologyError

Row: TypeAlias = tuple[Any, ...]
"""The values of a stream's fields, in order."""

Rows: TypeAlias = list[Row]

Fields: TypeAlias = str | Sequence[str]
"""What a caller may write for field names: one, or several."""


class TridentTuple(tuple[Any, ...]):
    """A row, or the part of it that a function asked for.

    Values are read by position (``tup[0]``) or by field (``tup["word"]``); equal to a plain tuple of its values.
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    _places: ClassVar[dict[str, int]] = {}

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if (place := self._places.get(key)) is None:
                raise KeyError(f"there is no field {key!r} here; the fields are {', '.join(self.fields) or '(none)'}")
            return tuple.__getitem__(self, place)
        return tuple.__getitem__(self, key)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def select(self, names: Sequence[str]) -> Row:
        """The values of some fields, in the order asked for."""
        return tuple(self[name] for name in names)

    def as_dict(self) -> dict[str, Any]:
        """Field name -> value."""
        return dict(zip(self.fields, self, strict=True))


@lru_cache(maxsize=1024)
def tuple_class(fields: tuple[str, ...]) -> type[TridentTuple]:
    """The class of the rows with these fields."""
    places = {name: place for place, name in enumerate(fields)}
    return type("TridentTuple", (TridentTuple,), {"__slots__": (), "fields": fields, "_places": places})


def projection(fields: Sequence[str], wanted: Sequence[str]) -> Callable[[Row], TridentTuple]:
    """What makes, of a row with ``fields``, the view with the ``wanted`` ones."""
    cls = tuple_class(tuple(wanted))
    places = [list(fields).index(name) for name in wanted]
    if places == list(range(len(fields))):
        return cls
    if len(places) == 1:
        place = places[0]
        return lambda row: cls((row[place],))
    if not places:
        return lambda _: cls()
    get = itemgetter(*places)
    return lambda row: cls(get(row))


def names_of(fields: Fields | None) -> tuple[str, ...]:
    """The names that a caller wrote, checked.

    Raises:
        TopologyError: not names, or one twice.
    """
    names: tuple[Any, ...] = () if fields is None else (fields,) if isinstance(fields, str) else tuple(fields)
    if wrong := [name for name in names if not isinstance(name, str) or not name or name.startswith("$")]:
        raise TopologyError([f"{wrong[0]!r} is no field name; names are texts that do not begin with $"])
    if len(set(names)) < len(names):
        raise TopologyError([f"duplicate field in {list(names)}: each field needs a name of its own"])
    return names


def select(fields: Sequence[str], wanted: Fields | None) -> tuple[str, ...]:
    """The wanted fields, all of them for None.

    Raises:
        TopologyError: a field is not there.
    """
    if wanted is None:
        return tuple(fields)
    names = names_of(wanted)
    for name in names:
        if name not in fields:
            message = "Trying to select non-existent field: '{}' from stream containing fields fields: <[{}]>"
            raise TopologyError([message.format(name, ", ".join(fields))])
    return names


def key_fields(method: str, fields: Sequence[str], wanted: Fields) -> tuple[str, ...]:
    """The fields of a key, at least one.

    Raises:
        TopologyError: a field is not there, or there is none.
    """
    if not (found := select(fields, wanted)):
        raise TopologyError([f"{method}() of no field"], hint="global_() brings all tuples to one task")
    return found
