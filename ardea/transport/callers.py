"""Who speaks for a number.

Two processes may: one that was frozen or cut off, and its replacement.  Their sockets have names of their own, so that
ZeroMQ does not give the connection of one to the other, and the one that is left never notices.
"""

from __future__ import annotations

import functools
import secrets


def caller(kind: str, number: int) -> bytes:
    """A name for the sockets of this process, as ``t7-9f2c01aa``; ``kind``: t task, m stream manager, x metrics."""
    return f"{kind}{number}-{secrets.token_hex(4)}".encode()


@functools.lru_cache(maxsize=4096)
def peer_number(name: bytes) -> int:
    """The number in such a name; -1 for a stranger's."""
    digits = name[1:].partition(b"-")[0]
    return int(digits) if digits.isdigit() else -1


class Callers:
    """Which socket leads to each number: that of its present process, and while a former one is heard, that."""

    def __init__(self) -> None:
        self._present: dict[int, bytes] = {}
        self._former: tuple[int, bytes] | None = None

    def hears(self, number: int, name: bytes, *, present: bool) -> None:
        """A message has come; ``present``: of the number's incarnation that is known, or a later one."""
        if present:
            self._present[number] = name
        else:
            self._former = number, name

    def heard(self) -> None:
        """It has been answered, if it had to be."""
        self._former = None

    def name(self, number: int) -> bytes | None:
        """Where a message to that number goes; None: nobody was heard yet."""
        former = self._former
        return former[1] if former is not None and former[0] == number else self._present.get(number)
