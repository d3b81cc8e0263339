"""The types that values of a state may be declared to have: those of whose fields msgspec knows."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from ardea.errors import UserError


class Kind(NamedTuple):
    """A type; ``named``: no part of it may be anything."""

    name: str
    decoder: msgspec.msgpack.Decoder[Any]
    named: bool


def kind_of(declared: Any, place: str = "") -> Kind:
    """``place``: file and line of the declaration.

    Raises:
        UserError: its objects cannot be kept.
    """
    name = declared.__qualname__ if isinstance(declared, type) else str(declared)
    try:
        return Kind(name, msgspec.msgpack.Decoder(declared), _is_named(declared))
    except (TypeError, NameError) as error:
        at = f"; it is declared at {place}" if place else ""
        raise UserError(
            f"type={name} cannot be the type of a state: {error}{at}",
            hint="Give a msgspec.Struct, a dataclass, a TypedDict or a plain type, whose fields are such types.",
        ) from error


def _is_named(declared: Any) -> bool:
    todo: list[Any] = [inspect.type_info(declared)]
    seen: list[Any] = []
    named = True
    while todo:
        part = todo.pop()
        if any(part is each for each in seen):
            continue
        seen.append(part)
        if isinstance(part, inspect.CustomType):
            raise TypeError(f"{part.cls.__qualname__} has no fields that could be kept")
        named = named and not isinstance(part, inspect.AnyType | inspect.RawType | inspect.ExtType)
        for name in part.__struct_fields__:
            inner = getattr(part, name)
            parts = inner if isinstance(inner, tuple) else (inner,)
            todo += [each for each in parts if isinstance(each, inspect.Type | inspect.Field)]
    return named
