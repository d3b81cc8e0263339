"""A pod that is about to be ended: each of its containers leaves a file, and waits for one of the manager's."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ardea.plan.names import LEAVING, LEFT
from ardea.protocol.wire_pb2 import Order
from ardea.stream_manager.registration import Registrar

LOOK = 1.0
"""Seconds between two looks for the first."""


class Departure:
    """Asks the master, and says when nothing is on its way to this container any more."""

    def __init__(self, folder: Path, container: int, registrar: Registrar) -> None:
        """``folder``: the manager's own."""
        self._folder, self._container, self._registrar = folder, container, registrar
        self._next = 0.0
        self._may_leave = False

    def look(self, now: float) -> float:
        """Each second; returns when to be called again.  Where no master answers, there is nobody to wait for."""
        if now < self._next:
            return self._next
        self._next = now + LOOK
        with contextlib.suppress(OSError):  # no descriptor is free, for example: it looks again
            if not self._registrar.departs and any(self._folder.parent.glob(f"*/{LEAVING}")):
                self._registrar.depart()
            if self._may_leave or (self._registrar.departs and self._registrar.alone):
                (self._folder / LEFT).touch()
        return self._next

    def ordered(self, order: Order) -> None:
        """Others have left, or this one may."""
        if self._registrar.departs and self._container in order.containers:
            self._may_leave, self._next = True, 0.0
