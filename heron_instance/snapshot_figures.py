"""How long the last snapshot and the last rollback of a task took, and how much was read: for metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class SnapshotFigures:
    """Seconds of each step, and ``restored``: bytes that were read, ever.

    ``align``: barriers were awaited.  ``freeze``: the executor took the state.  ``write``: until the file lay in the
    store.  ``restore``: the executor read the state.
    """

    clock: Callable[[], float] = time.monotonic
    align: float = 0.0
    freeze: float = 0.0
    write: float = 0.0
    restore: float = 0.0
    restored: int = 0
