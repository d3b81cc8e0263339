"""The values of one state: how they are kept where a change in place must not reach them, and in files.

Without a type, values are those of docs/keys.md.  With one, they are msgpack of their fields.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from ardea.backends.types import kind_of
from ardea.errors import ArdeaError, EncodingError
from ardea.protocol.scalars import type_name, unwrap
from ardea.protocol.values import RowCodec

SCALARS = frozenset(
    {int, float, str, bytes, bool, type(None), Decimal, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID}
)
"""Types of values that nobody can change, and that are kept as they are."""
_AS_THEY_ARE = (bytes, bytearray, memoryview, dt.datetime, dt.date, dt.time, dt.timedelta, uuid.UUID, Decimal)
_CODEC = RowCodec()


class Packed(bytes):
    """A value that could be changed in place, as it is kept: a letter, and what that says.

    ``t``: a tuple, as a row; ``v``: any other value, as the only one of a row; ``m``: msgpack of a type's fields.
    """

    @classmethod
    def of(cls, value: Any) -> Packed:
        """Raises EncodingError: it cannot be stored."""
        return cls(b"t" + _CODEC.encode([value]) if type(value) is tuple else b"v" + _CODEC.encode([(value,)]))

    def unpacked(self) -> Any:
        """Another one at each call; not of ``m``."""
        row = _CODEC.decode(self[1:])[0]
        return row if self[:1] == b"t" else row[0]


class Refused(NamedTuple):
    """The type of a value that cannot be kept, and why."""

    type: str
    reason: str


_SAYS_ALL = msgspec.MsgspecError, ArdeaError, ValueError, TypeError, OverflowError
"""Errors whose message is enough; of another one the author's code has raised, its name is needed too."""


class Values:
    """Of a state without a type.

    ``scalars``: types of values that are kept as they are, and need not be looked at.
    ``typed``: whether scalars of a former snapshot may be none of this state.
    """

    scalars = SCALARS
    typed = False

    def kept(self, value: Any) -> Any:
        """A scalar, or :class:`Packed`; raises EncodingError: it cannot be stored."""
        return value if type(value) in SCALARS else Packed.of(value)

    def value(self, kept: Any) -> Any:
        """What was kept, another object at each call if it could be changed."""
        return kept.unpacked() if type(kept) is Packed else kept

    def plain(self, value: Any) -> Any:
        """As a value of a row, for what is not kept; raises EncodingError."""
        return value

    def of_plain(self, plain: Any) -> Any:
        """The inverse, of a former snapshot; raises EncodingError: it is no value of this state."""
        return plain

    def loaded(self, kept: Any) -> Any:
        """What a former snapshot has kept, and this state can read; raises EncodingError."""
        if type(kept) is Packed and kept[:1] == b"m":
            raise EncodingError("it was written by a state with type=, and this one has none")
        return kept

    def refusal(self, value: Any) -> Refused | None:
        """Why this value cannot be kept; None: it can."""
        try:
            _, _, kind, reason = _CODEC.explain([(value,)])
        except LookupError:
            return None
        return Refused(kind, reason)


class Typed(Values):
    """Of a type that msgspec knows: Structs, dataclasses, TypedDicts, what Python has, and unions of those."""

    typed = True

    def __init__(self, kind: Any, place: str = "") -> None:
        """``place``: file and line of the declaration; raises UserError: objects of ``kind`` cannot be kept."""
        self._place = f"; the type is declared at {place}" if place else ""
        self._type = kind
        self._name, self._decoder, named = kind_of(kind, place)
        self._encoder = msgspec.msgpack.Encoder(enc_hook=_unwrapped) if named else None
        self.scalars = SCALARS & {kind} if isinstance(kind, type) else frozenset()

    def kept(self, value: Any) -> Any:
        """See :class:`Values`.

        What msgspec writes quickly it may write as something else, a Decimal as text: only what it reads as an equal
        value of the type is written so.
        """
        if self._encoder is not None:
            try:
                content = self._encoder.encode(value)
                back = self._decoder.decode(content)
                if back == value and _is_like(value, back):
                    return back if type(back) in SCALARS else Packed(b"m" + content)
            except (TypeError, ValueError, OverflowError, RecursionError):
                pass  # the long way says why
        plain = self.plain(value)
        if type(plain) in SCALARS:
            scalar = self.of_plain(plain)
            return scalar if type(scalar) in SCALARS else Packed.of(plain)
        return Packed.of(plain)

    def value(self, kept: Any) -> Any:
        """See :class:`Values`."""
        if type(kept) is not Packed:
            return kept
        if kept[:1] == b"m":
            return self._decoder.decode(memoryview(kept)[1:])
        return msgspec.convert(kept.unpacked(), self._type, builtin_types=_AS_THEY_ARE)

    def plain(self, value: Any) -> Any:
        """See :class:`Values`."""
        try:
            plain = msgspec.to_builtins(value, builtin_types=_AS_THEY_ARE, enc_hook=_unwrapped)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise EncodingError(f"it is no {self._name}: {error}") from error
        if not _is_whole(value, self.of_plain(plain)):
            raise EncodingError(f"it is no {self._name}")
        return plain

    def of_plain(self, plain: Any) -> Any:
        """See :class:`Values`."""
        try:
            return msgspec.convert(plain, self._type, builtin_types=_AS_THEY_ARE)
        except Exception as error:  # the author's __post_init__ runs here
            raise self._unlike(error) from error

    def loaded(self, kept: Any) -> Any:
        """See :class:`Values`."""
        try:
            if type(kept) is Packed:
                self.value(kept)
                return kept
        except Exception as error:
            raise self._unlike(error) from error
        scalar = self.of_plain(kept)
        return scalar if type(scalar) in SCALARS else Packed.of(kept)

    def _unlike(self, error: Exception) -> Exception:
        if isinstance(error, MemoryError):
            return error
        kind = "" if isinstance(error, _SAYS_ALL) else f"{type(error).__name__}: "
        return EncodingError(f"it is no {self._name}: {kind}{error}")

    def refusal(self, value: Any) -> Refused | None:
        """With the place of the declaration."""
        try:
            self.kept(value)
        except EncodingError as error:
            return Refused(type_name(value), error.message + self._place)
        return None


def values_of(kind: Any, place: str = "") -> Values:
    """Of a state of that type, declared at that place; None: it has none."""
    return Values() if kind is None else Typed(kind, place)


def _is_like(value: Any, back: Any) -> bool:
    """Whether what was read is what was written: a class of the author's comes back as itself."""
    kind = type(back)
    if type(value) is kind or (kind.__module__ == "builtins" and isinstance(value, kind)):
        return True
    return (kind is float and type(value) is int) or unwrap(value) is not value


def _is_whole(value: Any, back: Any) -> bool:
    """As :func:`_is_like`, and so is all in it: what a type does not name would be left out, and a set be a list."""
    if not _is_like(value, back):
        return False
    parts: Iterable[tuple[Any, Any]]
    if isinstance(back, msgspec.Struct):
        parts = zip(msgspec.structs.astuple(value), msgspec.structs.astuple(back), strict=True)
    elif dataclasses.is_dataclass(back):
        parts = ((getattr(value, f.name), getattr(back, f.name)) for f in dataclasses.fields(back) if f.init)
    elif isinstance(back, dict) and len(value) == len(back):
        parts = zip(value.values(), back.values(), strict=True)
    elif isinstance(back, list | tuple) and len(value) == len(back):
        parts = zip(value, back, strict=True)
    else:
        return not isinstance(back, dict | list | tuple)
    return all(_is_whole(each, its) for each, its in parts)


def _unwrapped(value: Any) -> Any:
    """For msgspec: NumPy and Arrow scalars."""
    plain = unwrap(value)
    if plain is value:
        raise TypeError(f"a {type_name(value)} has no type in msgpack")
    return plain
