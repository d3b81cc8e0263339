"""What the supervisors of one container say of its processes."""

from __future__ import annotations

import math
import stat
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ardea.health import ProcessRow
from ardea.health.processes import rows, supervisors
from ardea.supervision.records import EXITS, STATUS

LOOK_EVERY = 1.0
LARGEST = 1 << 20
"""Bytes of a task's folder that are read."""


class Supervised:
    """Reads their folders, at most once a second.

    In a pod the folder of a task's supervisor is the task's to write: what lies there may be anything, and what cannot
    be understood is passed over.
    """

    def __init__(
        self,
        folder: Path,
        container: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """``folder``: the container's; ``clock`` and ``wall`` in seconds, steady and since 1970."""
        self._folder, self._container, self._clock, self._wall = folder, container, clock, wall
        self._rows: dict[Path, list[ProcessRow]] = {}
        self._due = clock()

    def rows(self) -> list[ProcessRow]:
        """One for each process of the container; those of the look before where a file cannot be read."""
        if (now := self._clock()) >= self._due:
            self._due = now + LOOK_EVERY
            self._rows = {folder: self._read(folder) for folder in supervisors(self._folder)}
        return [row for found in self._rows.values() for row in found]

    def _read(self, folder: Path) -> list[ProcessRow]:
        known, foreign = self._rows.get(folder, []), folder != self._folder
        try:
            if foreign and _size(folder) > LARGEST:
                return known
            found = rows(folder, self._container, self._wall())
            # There and back: a row is one that can be sent.
            return msgspec.msgpack.decode(
                msgspec.msgpack.encode(found[:1] if foreign else found), type=list[ProcessRow]
            )
        except Exception:  # see the class
            return known


def _size(folder: Path) -> float:
    """Bytes that are read of it; what is no plain file may have no end."""
    found = [file.stat() for file in (folder / STATUS, *(folder / EXITS).glob("*"))]
    return sum(each.st_size if stat.S_ISREG(each.st_mode) else math.inf for each in found)
