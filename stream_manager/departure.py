"""A pod that is about to be ended: each of its containers leaves a file, and waits for one of the manager's."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ardea.plan.names import LEFT
from ardea.stream_manager.shell import Shell
from ardea.supervision.records import LEAVING

LOOK = 1.0
"""Seconds between two looks for the first."""


class Departure:
    """Lets the manager's shell ask, and says when the container may be ended."""

    def __init__(self, folder: Path, shell: Shell) -> None:
        """``folder``: the manager's own."""
        self._folder, self._shell = folder, shell
        self._next = 0.0
        self._left = False

    def look(self, now: float) -> float:
        """Each second, and at once when it may leave; returns when to be called again."""
        if now < self._next and (self._left or not self._shell.may_leave):
            return self._next
        self._next = now + LOOK
        with contextlib.suppress(OSError):  # no descriptor is free, for example: it looks again
            # Not by Path.glob, which passes over such errors since Python 3.13.
            if not any((each / LEAVING).exists() for each in self._folder.parent.iterdir()):
                self._stay()
            elif not self._shell.departs:
                self._shell.depart()
            if self._shell.may_leave:
                (self._folder / LEFT).touch()
                self._left = True
        return self._next

    def _stay(self) -> None:
        """Takes back what this life has said, or a former one: only one container was to end, and it is back."""
        self._shell.stay()
        (self._folder / LEFT).unlink(missing_ok=True)
        self._left = False
