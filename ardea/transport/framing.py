"""How the frames of one message lie in ZeroMQ's: all in one, since each of those costs as much as a small message.

The first begins with a table, little-endian ``u32``: how many frames there are, then the length of each.  The frames
follow it directly, or, in a message too large to be copied for that, as ZeroMQ frames of their own.  A frame of more
than ``LARGEST_FRAME`` bytes is cut into several of these: no socket takes a larger one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ardea.protocol.checked import MalformedError

MOST_FRAMES = 64
LARGEST_FRAME = 1 << 20
"""Bytes.  As many as are sent together (``heron.streammgr.cache.drain.size.bytes``): hardly anything has to be cut."""

_TABLES = [struct.Struct(f"<{count + 1}I") for count in range(MOST_FRAMES + 1)]


def pack(frames: Sequence[bytes], copied_below: int) -> list[bytes]:
    """ZeroMQ's frames for these; a message of ``copied_below`` bytes or more is not copied into one."""
    table = _TABLES[len(frames)].pack(len(frames), *map(len, frames))
    size = sum(map(len, frames))
    if size < copied_below or not size:
        return [b"".join((table, *frames))]
    if max(map(len, frames)) <= LARGEST_FRAME:
        return [table, *frames]
    return [table, *(part for frame in frames for part in _cut(frame))]


def unpack(first: bytes, more: Callable[[], bytes | None]) -> list[bytes]:
    """The frames that :func:`pack` was given; ``more`` reads ZeroMQ's next frame of the message, None after the last.

    Raises MalformedError.
    """
    if len(first) < 4:
        raise MalformedError
    count = int.from_bytes(first[:4], "little")
    at = 4 + 4 * count
    if count > MOST_FRAMES or len(first) < at:
        raise MalformedError
    lengths = _TABLES[count].unpack_from(first)[1:]
    frames: list[bytes] = []
    if len(first) > at or not sum(lengths):
        for length in lengths:
            frames.append(first[at : at + length])
            at += length
        if at != len(first):
            raise MalformedError
    else:
        frames.extend(_whole(length, more) for length in lengths)
    if more() is not None:
        raise MalformedError
    return frames


def _cut(frame: bytes) -> list[bytes]:
    if len(frame) <= LARGEST_FRAME:
        return [frame]
    return [frame[start : start + LARGEST_FRAME] for start in range(0, len(frame), LARGEST_FRAME)]


def _whole(length: int, more: Callable[[], bytes | None]) -> bytes:
    """A frame of that length, of the ZeroMQ frames that :func:`_cut` made of it."""
    parts: list[bytes] = []
    left = length
    while True:
        part = more()
        if part is None or len(part) != min(left, LARGEST_FRAME):
            raise MalformedError
        left -= len(part)
        if not left:
            return b"".join([*parts, part]) if parts else part
        parts.append(part)
