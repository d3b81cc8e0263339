"""What a master does that finds no record of snapshots: it looks for the newest one in the store.

Where there is none, the savepoint that the topology begins from is copied there.  Another thread does both.
"""

from __future__ import annotations

import math
from collections import deque

from ardea.config import Settings
from ardea.plan.definition import Begins
from ardea.plan.logical import LogicalPlan
from ardea.snapshots.beginning import Beginning
from ardea.topology_master.store import Found, Store

LOOKS_EVERY = 0.1
"""Seconds between two looks at how far it is."""
COPIED_A_SECOND = 5_000_000
"""Bytes of a savepoint, at least."""


class Survey:
    """One master's.  ``due``: when to look again at the latest."""

    def __init__(self, store: Store, plan: LogicalPlan, begins: Begins | None) -> None:
        """Begins it."""
        settings = Settings.of(plan.config)
        self._beginning = None if begins is None else Beginning(begins, plan, settings.key_groups)
        self._patience = settings.snapshot_timeout
        self._done: deque[Found | str] = deque()  # from the other thread
        self._began: float | None = None
        self._over = False
        self.due = -math.inf
        store.survey(self._beginning, self._done.append)

    def look(self, now: float) -> Found | str | None:
        """What was found, or why nothing can be; None: nothing yet, or it was said before."""
        self._began = now if self._began is None else self._began
        beginning = self._beginning
        if self._over:
            return None
        if self._done:
            self._over, self.due = True, math.inf
            return self._done.popleft()
        self.due = now + LOOKS_EVERY
        if beginning is None:
            return None
        patience = max(self._patience, beginning.size / COPIED_A_SECOND)
        if now - self._began < patience:
            return None
        self._over, self.due, beginning.given_up = True, math.inf, True
        return f"{beginning.says} after {patience:g} s (topology.stateful.checkpoint.timeout.secs)"

    @property
    def says(self) -> str:
        """What keeps the topology from beginning; empty: nothing does."""
        return "" if self._over or self._beginning is None else self._beginning.says
