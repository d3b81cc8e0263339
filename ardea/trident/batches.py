"""When a task has all of a batch: what it was sent against what the senders say, pure.

Senders report, behind their rows, how many they sent.  *Early* senders do so while the batch is processed, *late* ones
in the commit phase, because they commit or are behind one that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ardea.trident.processors import BatchRun

REMEMBERED = 1024
"""Transactions whose latest attempt is known, so that rows of former ones are recognised; fewer requests are open."""


class Settling(Protocol):
    """What a tracker does with the tuples that report.

    Attributes:
        asked: the batches are requests: one that fails does not come again.
    """

    asked: bool

    def ack(self, tup: Any) -> None:
        """It is done with."""

    def fail(self, tup: Any) -> None:
        """Its tree fails."""

    def failing(self, batch: TrackedBatch) -> None:
        """The batch has failed: called before its tuples fail, once for each."""


@dataclass(slots=True, eq=False)
class TrackedBatch:
    """The present attempt of a batch.

    Attributes:
        sent: rows per task that were sent on.
        asker: of a batch that is a request, who asked; unknown before the first report.
        error: why it failed, if an operation raised.
    """

    run: BatchRun
    received: Counter[int] = field(default_factory=Counter)
    reported: dict[int, int] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    commit: bool = False
    failed: bool = False
    held: Any = None
    asker: Any = None
    error: str = ""


class BatchTracker:
    """The batches of one batch group in one task.

    Args:
        early: the tasks that report while the batch is processed.
        late: the tasks that report in the commit phase.
        commits: whether this task waits for the commit.
        settling: acks and fails.
        begin: called with each new attempt.
        finish: called with a batch that is complete, and the tuple that its reports are anchored to.
    """

    def __init__(
        self,
        early: frozenset[int],
        late: frozenset[int],
        *,
        commits: bool,
        settling: Settling,
        begin: Callable[[BatchRun], None],
        finish: Callable[[TrackedBatch, Any], None],
    ) -> None:
        self._early, self._late, self._commits = early, late, commits
        self._settling, self._begin, self._finish = settling, begin, finish
        self._batches: dict[int, TrackedBatch] = {}
        self._latest: dict[int, int] = {}  # transaction -> its highest attempt

    def batch(self, txid: int, attempt: int) -> TrackedBatch | None:
        """The batch; a new one for a new attempt; None for a former one, and for one that is finished."""
        batch = self._batches.get(txid)
        if batch is not None and batch.run.attempt == attempt:
            return batch
        if attempt <= self._latest.get(txid, -1):
            return None
        if batch is not None:
            self._release(batch)
        self._latest[txid] = attempt
        batch = self._batches[txid] = TrackedBatch(BatchRun(txid, attempt))
        if len(self._latest) > REMEMBERED:
            self._forget(next(iter(self._latest)))
        self._begin(batch.run)
        return batch

    def report(self, txid: int, attempt: int, task: int, count: int, tup: Any, asker: Any = None) -> None:
        """A task says how many rows it sent, and whose request the batch is."""
        batch = self.batch(txid, attempt)
        if batch is None:
            self._settling.ack(tup)
            return
        was_early = self._early_complete(batch)
        batch.reported[task], batch.asker = count, asker
        if batch.received[task] != count:
            batch.failed = True
        if task in self._late and not was_early:
            batch.failed = True  # its early reports died with a former life of this task
        self._advance(batch, tup, early=task in self._early)

    def commit(self, txid: int, attempt: int, tup: Any) -> None:
        """The commit phase of the transaction has begun."""
        batch = self.batch(txid, attempt)
        if batch is None:
            self._settling.ack(tup)
            return
        batch.commit = True
        if not self._early_complete(batch):
            batch.failed = True
        self._advance(batch, tup, early=False)

    def fail(self, batch: TrackedBatch) -> None:
        """Something went wrong: what is held and the next report fail."""
        batch.failed = True
        batch.run.memory.clear()
        self._settling.failing(batch)
        if batch.held is not None:
            held, batch.held = batch.held, None
            self._settling.fail(held)

    def _forget(self, txid: int) -> None:
        del self._latest[txid]
        if self._settling.asked and (batch := self._batches.pop(txid, None)) is not None:
            self.fail(batch)  # it has failed, here or where nobody told this task

    def _advance(self, batch: TrackedBatch, tup: Any, *, early: bool) -> None:
        if batch.failed:
            self.fail(batch)
            self._settling.fail(tup)
        elif self._complete(batch):
            del self._batches[batch.run.txid]
            try:
                self._finish(batch, tup)
            except Exception:
                self.fail(batch)
                raise
            self._release(batch)
            self._settling.ack(tup)
        elif early and self._early_complete(batch):  # and the commit phase is still to come
            self._release(batch)
            self._settling.ack(tup)
        elif batch.held is None:
            batch.held = tup  # if this task dies, its tree fails
        else:
            self._settling.ack(tup)

    def _early_complete(self, batch: TrackedBatch) -> bool:
        return self._early <= batch.reported.keys()

    def _complete(self, batch: TrackedBatch) -> bool:
        if not self._early_complete(batch):
            return False
        return (batch.commit or not self._commits) and self._late <= batch.reported.keys()

    def _release(self, batch: TrackedBatch) -> None:
        if batch.held is not None:
            held, batch.held = batch.held, None
            self._settling.ack(held)
