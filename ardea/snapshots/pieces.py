"""The pieces of a file of state, whose rows stay bytes: a master looks at files, and never at values.

ARDEASNP, the number of the format (u32), then pieces: length (u32), and msgpack of
[name of the state, kind, its first key group, that after its last, rows, when they were written]
Format 1 has no time in it, and no values of a type.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterable, Iterator

import msgspec

from ardea.errors import StateError
from ardea.snapshots.manifest import FORMAT, FORMATS

_HEAD = struct.Struct("<8sI")
_LENGTH = struct.Struct("<I")
_MAGIC = b"ARDEASNP"
HEAD = _HEAD.pack(_MAGIC, FORMAT)


WATERMARK = "__watermark"
"""The piece that has a task's; what an author declares has no such name."""


class Kind(enum.IntEnum):
    """What the rows of a piece are."""

    ONE = 1  # (value): of a state that holds one
    PUT = 2  # (key, value)
    PACKED = 3  # (key, value as bytes)
    GONE = 4  # (key): deleted since the file before
    ITEMS = 5  # (item): of a list, in order


class Stored(msgspec.Struct, array_like=True):
    """A piece as it lies there: its key groups are those from ``first`` to before ``stop``."""

    state: str
    kind: Kind
    first: int
    stop: int
    rows: bytes
    written: float = 0.0


_SIZES = {0xD9: struct.Struct(">B"), 0xDA: struct.Struct(">H")}
"""Of the length of a text that is not short, by what msgpack writes before it."""
_SHORT = 0b101
"""The first bits of that where the text is short: the other five are its length."""
_PIECES = msgspec.msgpack.Decoder(Stored)


def pack(piece: Stored) -> bytes:
    """Part of a file; the first begins after ``HEAD``."""
    content = msgspec.msgpack.encode(piece)
    return _LENGTH.pack(len(content)) + content


def pieces(content: bytes, name: str) -> Iterator[Stored]:
    """All of a file, in their order; ``name`` is the file's.

    Raises:
        StateError: it is damaged, or no such file.
    """
    try:
        _check_head(content, name)
        place, view = _HEAD.size, memoryview(content)
        while place < len(content):
            (length,) = _LENGTH.unpack_from(content, place)
            place += _LENGTH.size
            yield _PIECES.decode(view[place : place + length])
            place += length
    except (struct.error, msgspec.DecodeError) as error:
        raise StateError(f"{name} cannot be read: {error}") from error


def _check_head(content: bytes | bytearray, name: str) -> None:
    """Raises struct.error: it is too short."""
    magic, number = _HEAD.unpack_from(content)
    if magic != _MAGIC:
        raise StateError(f"{name} is no file of a snapshot")
    if number not in FORMATS:
        raise StateError(f"{name} is of format {number}, and this Ardea reads formats up to {FORMAT}")


class Heads:
    """What a file holds that passes by: ``found`` are its states, and of what kind the last piece of each is.

    No piece is ever held as a whole: it may be larger than the memory of who copies it.
    """

    def __init__(self, name: str) -> None:
        """``name``: the file's."""
        self.found: dict[str, Kind] = {}
        self._name = name
        self._held = bytearray()  # what begins with the head of the file, or of a piece, that has not come as a whole
        self._skipped = 0  # bytes to come that are the rest of a piece
        self._begun = False

    def passing(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The same bytes.

        Raises:
            StateError: all of them have passed, and they are no such file.
        """
        broken: StateError | None = None
        for part in parts:
            if broken is None:
                try:
                    self._look(part)
                except StateError as error:
                    broken = error  # where bytes were damaged on the way, who reads them says so in the end
            yield part
        if broken is None and (self._held or self._skipped or not self._begun):
            broken = StateError(f"{self._name} cannot be read: it ends within a piece")
        if broken is not None:
            raise broken

    def _look(self, part: bytes) -> None:
        held = self._held
        held += part[self._skipped :]
        self._skipped -= min(self._skipped, len(part))
        if not self._begun:
            if len(held) < _HEAD.size:
                return
            _check_head(held, self._name)
            del held[: _HEAD.size]
            self._begun = True
        while (start := _start(held, self._name)) is not None:
            state, kind = start
            self.found[state] = kind
            end = _LENGTH.size + _LENGTH.unpack_from(held)[0]
            self._skipped = max(0, end - len(held))
            del held[:end]


def _start(held: bytearray, name: str) -> tuple[str, Kind] | None:
    """State and kind of the piece that begins there; None: not all of that has come.

    They are the first two of a short list, as msgpack writes it: a text after its length, and a number of one byte.
    """
    place = _LENGTH.size + 1
    try:
        mark = held[place]
        place += 1
        if mark in _SIZES:
            (length,) = _SIZES[mark].unpack_from(held, place)
            place += _SIZES[mark].size
        elif mark >> 5 == _SHORT:
            length = mark & 0x1F
        else:
            raise ValueError("a piece in it is of no state")
        kind = Kind(held[place + length])
        return held[place : place + length].decode(), kind
    except (IndexError, struct.error):
        return None
    except ValueError as error:
        raise StateError(f"{name} cannot be read: {error}") from error
