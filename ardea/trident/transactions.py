"""Which transactions run, and which may commit: the master batch coordinator's state, pure.

Several transactions are processed side by side; commits come one at a time, in the order of the ids.  When one fails,
it and all later ones are begun again with a higher attempt.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

LIVES = 1 << 32
"""An attempt counts up within a life of the coordinator; above that it counts the lives."""

MOST_PATIENCE = 256


class Phase(enum.StrEnum):
    """What a transaction waits for."""

    BATCH = "$batch"
    """Everything but the commits."""

    PROCESSED = "processed"
    """Its turn to commit."""

    COMMIT = "$commit"
    """The commits, and all that is behind them."""


class Step(NamedTuple):
    """An attempt of a transaction enters a phase: what the coordinator emits, and hears the verdict on."""

    phase: Phase
    txid: int
    attempt: int


@dataclass(slots=True)
class _Active:
    attempt: int
    phase: Phase


class Transactions:
    """The active transactions.

    Args:
        current: the first transaction that is not known to be committed.
        life: how often there was a coordinator before; attempts of later lives are higher.
        most: how many transactions may be active.
        interval: seconds between two batches at least.
        patience: a transaction that failed so often in this life is skipped: it comes again without its tuples.
            None: it is tried for ever.
    """

    def __init__(self, current: int, life: int, most: int, interval: float = 0.0, patience: int | None = None) -> None:
        self.current = current
        self.failures = 0  # in a row
        self._life = life
        self._most = most
        self._active: dict[int, _Active] = {}
        self._tried: dict[int, int] = {}  # transaction -> attempts begun in this life
        self._failed: dict[int, int] = {}  # transaction -> its own failures in this life
        self._interval = interval
        self._next_begin = -math.inf
        self._most_failures = math.inf if patience is None else patience
        self._patience = 0

    @property
    def idle(self) -> bool:
        """Whether no transaction is active."""
        return not self._active

    def skips(self, txid: int) -> bool:
        """Whether the transaction has failed too often."""
        return self._failed.get(txid, 0) >= self._most_failures

    def next_steps(self, ready: Callable[[int], bool], now: float = 0.0) -> list[Step]:
        """What can go on now: a commit whose turn it is, and new batches as long as ``ready(txid)``."""
        steps = self.commits()
        if self._patience:
            self._patience -= 1
            return steps
        for txid in range(self.current, self.current + self._most):
            if txid in self._active:
                continue
            if now < self._next_begin or not ready(txid):
                break
            self._next_begin = now + self._interval
            tried = self._tried[txid] = self._tried.get(txid, -1) + 1
            self._active[txid] = _Active(self._life * LIVES + tried, Phase.BATCH)
            steps.append(self._step(txid))
        return steps

    def commits(self) -> list[Step]:
        """The commit whose turn it is, once."""
        first = self._active.get(self.current)
        if first is None or first.phase is not Phase.PROCESSED:
            return []
        first.phase = Phase.COMMIT
        return [self._step(self.current)]

    def done(self, step: Step) -> bool:
        """The step is complete; True if that committed its transaction.  Former attempts' steps change nothing."""
        if not self.is_present(step):
            return False
        if step.phase is Phase.BATCH:
            self._active[step.txid].phase = Phase.PROCESSED
            return False
        del self._active[step.txid]
        self._tried.pop(step.txid, None)
        self._failed.pop(step.txid, None)
        self.current = step.txid + 1
        self.failures = self._patience = 0
        return True

    def failed(self, step: Step, *, counts: bool = True) -> bool:
        """The step failed: it and all later transactions are to be begun again.

        The first time at once; then after 1, 3, 7 ... calls of :meth:`next_steps`.  ``counts``: the transaction may be
        to blame, and is skipped in the end.
        """
        if not self.is_present(step):
            return False
        for txid in [txid for txid in self._active if txid >= step.txid]:
            del self._active[txid]
        self._failed[step.txid] = self._failed.get(step.txid, 0) + counts
        self._patience = min((1 << self.failures) - 1, MOST_PATIENCE)
        self.failures = min(self.failures + 1, 10)
        return True

    def is_present(self, step: Step) -> bool:
        """Whether its verdict counts: it is of the present attempt and phase."""
        active = self._active.get(step.txid)
        return active is not None and (active.phase, active.attempt) == (step.phase, step.attempt)

    def _step(self, txid: int) -> Step:
        active = self._active[txid]
        return Step(active.phase, txid, active.attempt)
