"""A pod that is about to be ended: each of its containers leaves a file, and waits for one of the manager's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who makes pods needs the names of the files only
    from ardea.protocol.wire_pb2 import Order
    from stream_manager.registration import Registrar

LEAVING, LEFT = "leaving", "left"
"""Files in the folder of a container's process, and in the manager's, beside it."""
LOOK = 1.0
"""Seconds between two looks for the first."""


class Departure:
    """Asks the master, and says when nothing is on its way to this container any more."""

    def __init__(self, folder: Path, container: int, registrar: Registrar) -> None:
        """``folder``: the manager's own."""
        self._folder, self._container, self._registrar = folder, container, registrar
        self._next = 0.0

    def look(self, now: float) -> float:
        """Each second; returns when to be called again.  Where no master answers, there is nobody to wait for."""
        if now < self._next:
            return self._next
        self._next = now + LOOK
        if not self._registrar.departs and any(self._folder.parent.glob(f"*/{LEAVING}")):
            self._registrar.depart()
        if self._registrar.departs and self._registrar.alone:
            self._leave()
        return self._next

    def ordered(self, order: Order) -> None:
        """Others have left, or this one may."""
        if self._registrar.departs and self._container in order.containers:
            self._leave()

    def _leave(self) -> None:
        (self._folder / LEFT).touch()
