"""Who speaks for a number.

Two processes may: one that was frozen or cut off, and its replacement.  Their sockets have names of their own: with one
name ZeroMQ would give the connection of one to the other, and the one would never notice.
"""

from __future__ import annotations

import functools
import secrets

MOST = 1 << 16
"""Incarnations that are remembered: strangers may make them up."""


def caller(kind: str, number: int) -> bytes:
    """A name for the sockets of this process, as ``t7-9f2c01aa``; ``kind``: t task, m stream manager, x metrics."""
    return f"{kind}{number}-{secrets.token_hex(4)}".encode()


@functools.lru_cache(maxsize=4096)
def peer_number(name: bytes) -> int:
    """The number in such a name; -1 for a stranger's."""
    digits = name[1:].partition(b"-")[0]
    return int(digits) if digits.isdigit() else -1


class Callers:
    """By which socket each incarnation of a number was heard last: what is sent to it goes there."""

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], bytes] = {}  # those heard last stand last
        self._speaker = (-1, b"")

    def hears(self, number: int, incarnation: int, name: bytes) -> None:
        """A message has come."""
        key = number, incarnation
        self._names.pop(key, None)
        self._names[key] = name
        self._speaker = number, name
        if len(self._names) > MOST:
            del self._names[next(iter(self._names))]

    def name(self, number: int, incarnation: int) -> bytes | None:
        """Where a message to it goes; None: nobody knows.  ``incarnation`` 0: to who spoke just now, if it was one."""
        if incarnation:
            return self._names.get((number, incarnation))
        return self._speaker[1] if self._speaker[0] == number else None
