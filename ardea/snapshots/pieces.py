"""The pieces of a file of state, whose rows stay bytes: a master looks at files, and never at values.

ARDEASNP, the number of the format (u32), then pieces: length (u32), and msgpack of
[name of the state, kind, its first key group, that after its last, rows, when they were written]
Format 1 has no time in it, and no values of a type.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Iterator

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
        magic, number = _HEAD.unpack_from(content)
        if magic != _MAGIC:
            raise StateError(f"{name} is no file of a snapshot")
        if number not in FORMATS:
            raise StateError(f"{name} is of format {number}, and this Ardea reads formats up to {FORMAT}")
        place, view = _HEAD.size, memoryview(content)
        while place < len(content):
            (length,) = _LENGTH.unpack_from(content, place)
            place += _LENGTH.size
            yield _PIECES.decode(view[place : place + length])
            place += length
    except (struct.error, msgspec.DecodeError) as error:
        raise StateError(f"{name} cannot be read: {error}") from error
