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
SILENT = 1.0
"""Seconds without an answer after which the store is a trouble."""


class Survey:
    """One master's.  ``due``: when to look again at the latest."""

    def __init__(self, store: Store, plan: LogicalPlan, begins: Begins | None) -> None:
        """Begins it."""
        settings = Settings.of(plan.config)
        self._beginning = None if begins is None else Beginning(begins, plan, settings.key_groups)
        self._store = f"the store of snapshots {settings.snapshot_storage or 'beside the state'}"
        self._patience = settings.snapshot_timeout
        self._done: deque[Found | str] = deque()  # from the other thread
        self._began: float | None = None
        self._over = False
        self.due = -math.inf
        store.survey(self._beginning, self._done.append)

    def look(self, now: float, *, works: bool) -> Found | str | None:
        """What was found, or why nothing can be; None: nothing yet, or it was said before.

        ``works``: tasks do, in a timeline whose record is lost.  To give up would end what goes on without the store.
        """
        self._began = now if self._began is None else self._began
        if self._over:
            return None
        if self._done:
            self._over, self.due = True, math.inf
            return self._done.popleft()
        self.due = now + LOOKS_EVERY
        size = 0 if self._beginning is None else self._beginning.size
        patience = max(self._patience, size / COPIED_A_SECOND)
        if works or now - self._began < patience:
            return None
        why = f"{self.says} after {patience:g} s (topology.stateful.checkpoint.timeout.secs)"
        self._over, self.due = True, math.inf
        if self._beginning is not None:
            self._beginning.given_up = True
        return why

    @property
    def says(self) -> str:
        """What keeps the topology from beginning; empty: nothing does."""
        if self._over:
            return ""
        return f"{self._store} has not answered" if self._beginning is None else self._beginning.says

    def silence(self, now: float) -> float:
        """For how many seconds neither the store nor the savepoint has answered; 0: one has, or it is not long yet."""
        copies = self._beginning is not None and self._beginning.size > 0
        if self._over or self._began is None or copies or now - self._began < SILENT:
            return 0.0
        return now - self._began
