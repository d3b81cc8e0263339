"""A file of rows that a sink has taken, and that are to be written outside once their snapshot counts.

ARDEAROW, the number of the format (u32), then blocks, each after its length (u32).  The first is msgpack of the mark,
[topology, component, task, number]; all others are rows, as they travel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ardea.errors import EncodingError, ProtocolError, StateError, UserError
from ardea.protocol.values import RowCodec, are_plain
from ardea.snapshots.marks import Mark

FORMAT = 1
SUFFIX = ".rows"
HEAD = 64 << 10
"""First bytes of a file, in which its mark is, however long the names are."""
_HEAD = struct.Struct("<8sI")
_LENGTH = struct.Struct("<I")
_MAGIC = b"ARDEAROW"
_CODEC = RowCodec()


_MARKS = msgspec.msgpack.Decoder(tuple[str, str, int, int])


def head_of(mark: Mark) -> bytes:
    """The first bytes of a file."""
    return _HEAD.pack(_MAGIC, FORMAT) + _block(msgspec.msgpack.encode(tuple(mark)))


def encode_rows(rows: Sequence[Sequence[Any]], component: str) -> bytes:
    """Part of a file.

    Raises:
        UserError: a value cannot be stored; pickles never are.
    """
    try:
        return _block(_CODEC.encode(rows, plain=bool(rows) and are_plain(rows, len(rows[0]))))
    except EncodingError as error:
        refusal = _CODEC.explain(rows)
        raise UserError(
            f"the sink {component} got a {refusal.type}, as value {refusal.field} of a row, which cannot be stored:"
            f" {refusal.reason}",
            hint="Have row() make values of the types in docs/keys.md, in lists, tuples and dicts.",
        ) from error


def mark_of(content: bytes, name: str) -> Mark:
    """Whose rows they are, by the first ``HEAD`` bytes or more; ``name`` is the file's.

    Raises:
        StateError: it is damaged, or no such file.
    """
    return Mark(*_decoded(_blocks(content, name), name)[0])


def _decoded(blocks: Iterator[memoryview], name: str) -> tuple[tuple[str, str, int, int], Iterator[memoryview]]:
    try:
        return _MARKS.decode(next(blocks)), blocks
    except (StopIteration, msgspec.DecodeError) as error:
        raise StateError(f"{name} cannot be read: it does not say whose rows it has") from error


def rows_of(content: bytes, name: str) -> Iterator[tuple[Any, ...]]:
    """All rows, in order.

    Raises:
        StateError: it is damaged, or no such file.
    """
    _, blocks = _decoded(_blocks(content, name), name)
    for block in blocks:
        try:
            yield from _CODEC.decode(block)
        except ProtocolError as error:
            raise StateError(f"{name} cannot be read: {error}") from error


def _block(content: bytes) -> bytes:
    return _LENGTH.pack(len(content)) + content


def _blocks(content: bytes, name: str) -> Iterator[memoryview]:
    try:
        magic, number = _HEAD.unpack_from(content)
        if magic != _MAGIC:
            raise StateError(f"{name} is no file of a sink's rows")
        if number != FORMAT:
            raise StateError(f"{name} is of format {number}, and this Ardea reads format {FORMAT}")
        place, view = _HEAD.size, memoryview(content)
        while place < len(content):
            (length,) = _LENGTH.unpack_from(content, place)
            place += _LENGTH.size
            if place + length > len(content):
                raise StateError(f"{name} ends in the middle of its rows")
            yield view[place : place + length]
            place += length
    except struct.error as error:
        raise StateError(f"{name} cannot be read: {error}") from error
