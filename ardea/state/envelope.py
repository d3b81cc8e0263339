"""What a stored node looks like: one line of header, then the data as it is.

    ardea-state 1 <version> <p|e> <bytes> <xxh3-64 of all but itself>

``p`` is a persistent node, ``e`` an ephemeral one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import xxhash

from ardea.errors import StateError

FORMAT = 1
_MAGIC = re.compile(rb"ardea-state (\d{1,9}) ")
_HEADER = re.compile(rb"ardea-state 1 (\d{1,18}) ([pe]) (\d{1,18}) ([0-9a-f]{16})\n")


class Damaged(StateError):  # noqa: N818
    """Stored contents that are torn, corrupt, foreign or of a newer format."""


@dataclass(frozen=True, slots=True)
class Node:
    """The contents of one node."""

    data: bytes
    version: int
    ephemeral: bool = False


def seal(node: Node) -> bytes:
    """The bytes to store."""
    front = _front(node.version, node.ephemeral, len(node.data))
    return front + _checksum(front, node.data) + b"\n" + node.data


def unseal(contents: bytes, where: str) -> Node:
    """The inverse of :func:`seal`; ``where`` names the place in messages.

    Raises:
        Damaged: the contents are not what was stored, or not ours.
    """
    magic = _MAGIC.match(contents)
    if magic is None:
        raise damaged(where, "was not written by Ardea, or its beginning is lost")
    if int(magic[1]) > FORMAT:
        raise Damaged(
            f"{where} has format {int(magic[1])}, this Ardea reads up to {FORMAT}; it is left as it is",
            hint="use the version of Ardea that wrote it, or a newer one",
        )
    header = _HEADER.match(contents)
    if header is None:
        raise damaged(where, "has a damaged header")
    data = contents[header.end() :]
    version, ephemeral, size = int(header[1]), header[2] == b"e", int(header[3])
    if len(data) != size:
        raise damaged(where, f"holds {len(data)} bytes of data where {size} were written")
    if header[4] != _checksum(_front(version, ephemeral, size), data):
        raise damaged(where, "does not match its checksum")
    return Node(data, version, ephemeral)


def _front(version: int, ephemeral: bool, size: int) -> bytes:
    return b"ardea-state %d %d %s %d " % (FORMAT, version, b"e" if ephemeral else b"p", size)


def _checksum(front: bytes, data: bytes) -> bytes:
    return xxhash.xxh3_64_hexdigest(front + data).encode()


def damaged(where: str, what: str) -> Damaged:
    """What to say of a place whose contents are lost."""
    return Damaged(
        f"{where} {what}; it is left as it is, and what it belongs to cannot go on",
        hint="put back a copy of it, or give the topology up: `ardea kill` removes it, then submit it again",
    )
