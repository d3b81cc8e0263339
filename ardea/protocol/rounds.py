"""Rounds of rest by task, and whether two tables of them agree, told by one number (docs/end-of-topology.md)."""

from __future__ import annotations

import struct
from collections.abc import KeysView, Mapping
from hashlib import blake2b

_ROUND = struct.Struct("<IQ")


class Rounds:
    """task -> its round.

    ``digest``: of all of them, in 64 bits, in whatever order they came; 0 if there are none.  That of two parts is the
    XOR of theirs.
    """

    def __init__(self, rounds: Mapping[int, int] | None = None) -> None:
        self._rounds: dict[int, int] = {}
        self.digest = 0
        for task, round_ in (rounds or {}).items():
            self[task] = round_

    @property
    def tasks(self) -> KeysView[int]:
        """Those whose rounds are known."""
        return self._rounds.keys()

    def __setitem__(self, task: int, round_: int) -> None:
        self.forget(task)
        self._rounds[task] = round_
        self.digest ^= _mark(task, round_)

    def forget(self, task: int) -> bool:
        """Whether there was one."""
        round_ = self._rounds.pop(task, None)
        if round_ is None:
            return False
        self.digest ^= _mark(task, round_)
        return True


def _mark(task: int, round_: int) -> int:
    return int.from_bytes(blake2b(_ROUND.pack(task, round_), digest_size=8).digest(), "little")
