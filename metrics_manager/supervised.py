"""What the supervisors of one container say of its processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ardea.health import ProcessRow
from ardea.health.processes import rows, supervisors
from ardea.supervision.records import STATUS

LOOK_EVERY = 1.0
LARGEST = 1 << 20
"""Bytes of a file that is read."""


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
        known = self._rows.get(folder, [])
        try:
            if (folder / STATUS).exists() and (folder / STATUS).stat().st_size > LARGEST:
                return known
            found = msgspec.to_builtins(rows(folder, self._container, self._wall()))
            return msgspec.convert(found if folder == self._folder else found[:1], list[ProcessRow])
        except Exception:  # see the class
            return known
