"""What a master does before it goes back to a snapshot: it looks for the newest one in the store.

Where there is neither a record nor a snapshot, the savepoint that the topology begins from is copied there.  Another
thread does both.
"""

from __future__ import annotations

import math
from collections import deque
from functools import partial

from ardea.config import Settings
from ardea.errors import ArdeaError
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
AGAIN = 1.0
"""Seconds after an error of the store until it is asked again."""
ERRORS = 10.0
"""Seconds of errors before a topology that has not come up ends: managers may remember one that the state has lost."""


class Survey:
    """One master's.  ``due``: when to look again at the latest."""

    def __init__(self, store: Store, plan: LogicalPlan, begins: Begins | None) -> None:
        """Begins it."""
        settings = Settings.of(plan.config)
        self._beginning = None if begins is None else Beginning(begins, plan, settings.key_groups)
        self._store = f"the store of snapshots {settings.snapshot_storage or 'beside the state'}"
        self._timeout = settings.snapshot_timeout
        self._done: deque[Found | Exception] = deque()  # from the other thread
        self._began: float | None = None
        self._error, self._again = "", math.inf  # the store's last one, and when it is asked again
        self._over = False
        self.due = -math.inf
        self._begin = partial(store.survey, self._beginning, self._done.append)
        self._begin()

    def look(self, now: float, *, works: bool) -> Found | str | None:
        """What was found, or why nothing can be; None: nothing yet, or it was said before.

        ``works``: tasks do, or have done so, in a timeline whose record is lost.  To give up would end what goes on
        without the store.
        """
        self._began = now if self._began is None else self._began
        if self._over:
            return None
        if self._done:
            found = self._done.popleft()
            if not isinstance(found, Exception):
                return self._end(found)
            if isinstance(found, ArdeaError):
                return self._end("; ".join(filter(None, (found.message, found.hint))))
            self._error, self._again = f"{type(found).__name__}: {found}", now + AGAIN
        elif now >= self._again:
            self._again = math.inf
            self._begin()
        self.due = now + LOOKS_EVERY
        patience = self._patience
        if works or now - self._began < patience:
            return None
        if self._beginning is not None:
            self._beginning.given_up = True
        limit = "" if self._error else " (topology.stateful.checkpoint.timeout.secs)"
        return self._end(f"{self.says} after {patience:g} s{limit}")

    def _end(self, found: Found | str) -> Found | str:
        self._over, self.due = True, math.inf
        return found

    @property
    def _patience(self) -> float:
        """Seconds after which a topology that has not come up ends."""
        if self._error:
            return ERRORS
        return max(self._timeout, 0 if self._beginning is None else self._beginning.size / COPIED_A_SECOND)

    @property
    def says(self) -> str:
        """What keeps the topology from beginning; empty: nothing does."""
        if self._over:
            return ""
        if self._error:
            return f"{self._store} cannot be read: {self._error}"
        return f"{self._store} has not answered" if self._beginning is None else self._beginning.says

    def silence(self, now: float) -> float:
        """For how many seconds neither the store nor the savepoint was read; 0: one was, or it is not long yet."""
        copies = self._beginning is not None and self._beginning.size > 0
        if self._over or self._began is None or copies or now - self._began < SILENT:
            return 0.0
        return now - self._began
