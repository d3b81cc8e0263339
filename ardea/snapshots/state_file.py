"""A file of one task's state: all of it, or what has changed since the file before (``pieces`` says how it is cut)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from xxhash import xxh3_64

from ardea.errors import EncodingError, ProtocolError, StateError, UserError
from ardea.protocol.values import RowCodec, are_plain
from ardea.snapshots.pieces import Kind, Stored, pack, pieces

_CODEC = RowCodec()


class Piece(NamedTuple):
    """Part of a file; ``groups``: those of its keys, none where it has no keys.

    ``written``: by when all its rows were, in seconds since 1970; 0: nobody asks.
    """

    state: str
    kind: Kind
    groups: range
    rows: list[tuple[Any, ...]]
    written: float = 0.0


def encode_piece(piece: Piece) -> bytes:
    """Part of a file; the first begins after ``HEAD``.

    Raises:
        UserError: a value cannot be stored; pickles never are.
    """
    state, kind, groups, rows, written = piece
    try:
        encoded = _CODEC.encode(rows, plain=bool(rows) and are_plain(rows, len(rows[0])))
    except EncodingError as error:
        refusal = _CODEC.explain(rows)
        where = "" if kind in (Kind.ONE, Kind.ITEMS) else f" at {rows[refusal.row][0]!r}"
        raise unstorable(state, where, refusal.type, refusal.reason) from error
    return pack(Stored(state, kind, groups.start, groups.stop, encoded, written))


def unstorable(state: str, where: str, kind: str, reason: str) -> UserError:
    """What is said of it; ``where`` in the state."""
    return UserError(
        f"state {state!r} holds{where[:200]} a {kind}, which cannot be stored: {reason}",
        hint="Keep values of the types in docs/keys.md, in lists, tuples and dicts, or declare their type=.",
    )


def unreadable(component: str, state: str, where: str, error: EncodingError) -> UserError:
    """What is said of a value of a former snapshot; ``where`` in the state."""
    return UserError(
        f"{component}: what the snapshot holds of state {state!r}{where[:200]} cannot be read: {error.message}",
        hint="Give fields that are new a default; a state whose values mean something else needs another name.",
    )


def decode_state(content: bytes, name: str, wanted: range | None = None) -> Iterator[Piece]:
    """All pieces, in their order; ``name`` is the file's, ``wanted``: of keys only what is in these groups or close.

    Raises:
        StateError: it is damaged, or no such file.
    """
    for found in pieces(content, name):
        groups = range(found.first, found.stop)
        if wanted is None or not groups or (groups.start < wanted.stop and groups.stop > wanted.start):
            try:
                rows = _CODEC.decode(found.rows)
            except ProtocolError as error:
                raise StateError(f"{name} cannot be read: {error}") from error
            yield Piece(found.state, found.kind, groups, rows, found.written)


class Content:
    """A file that is being written: once it is, ``bytes`` and ``checksum`` are those of all its pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self._digest = xxh3_64()
        self.bytes = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self._digest.update(piece)
            self.bytes += len(piece)
            yield piece

    @property
    def checksum(self) -> int:
        """xxh3, of 64 bits."""
        return self._digest.intdigest()
