"""The file of one task's state: what each of its states holds, as rows.

ARDEASNP, the number of the format (u32), then msgpack: a map from the name of a state to its encoded rows
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ardea.errors import ProtocolError, StateError
from ardea.protocol.values import RowCodec
from ardea.snapshots.manifest import FORMAT

_HEAD = struct.Struct("<8sI")
_MAGIC = b"ARDEASNP"
_CODEC = RowCodec()
_TABLES = msgspec.msgpack.Decoder(dict[str, bytes])

Tables = Mapping[str, Sequence[Sequence[Any]]]


def encode_state(tables: Tables) -> bytes:
    """The file.

    Raises:
        EncodingError: a value cannot be stored; pickles never are.
    """
    return _HEAD.pack(_MAGIC, FORMAT) + msgspec.msgpack.encode({n: _CODEC.encode(rows) for n, rows in tables.items()})


def decode_state(content: bytes, name: str) -> dict[str, list[tuple[Any, ...]]]:
    """The inverse; ``name`` is the file's.

    Raises:
        StateError: it is damaged, or no such file.
    """
    try:
        magic, number = _HEAD.unpack_from(content)
        if magic != _MAGIC:
            raise StateError(f"{name} is no file of a snapshot")
        if number != FORMAT:
            raise StateError(f"{name} is of format {number}, and this Ardea reads format {FORMAT}")
        return {table: _CODEC.decode(rows) for table, rows in _TABLES.decode(content[_HEAD.size :]).items()}
    except (struct.error, msgspec.DecodeError, ProtocolError) as error:
        raise StateError(f"{name} cannot be read: {error}") from error
