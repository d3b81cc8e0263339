"""The ledger: which tuple trees of one spout task are open, and what is still missing from each.

Twenty bytes a pending tree, whatever its size: the XOR of all edges that were emitted and not yet acked, the
generation that owns the slot, and the deadline.  Zero means complete only while open.  Exactly one verdict leaves
for each (task, slot, generation); whatever arrives for a root that is not open is late: counted, dropped, never
stored.  Everything works on whole columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.ids import GENERATIONS, NO_IDS, SLOTS, U64, distinct, fold, generations_of, make_roots, slots_of

Slots = NDArray[np.intp]
OPEN = np.uint32(1 << 31)
USED = np.uint32(1 << 30)
_GENERATION = np.uint32(GENERATIONS - 1)
_NEWER = np.uint32(GENERATIONS // 2 - 1)


@dataclass(slots=True)
class LedgerStatistics:
    """Counters only grow; ``pending`` is now."""

    opened: int = 0
    acked: int = 0
    failed: int = 0
    timed_out: int = 0
    lost: int = 0
    late: int = 0
    pending: int = 0


class Ledger:
    """All trees of one spout task.  Methods return the roots that got their verdict by the call."""

    def __init__(self, task: int, timeout: float) -> None:
        """``timeout`` in seconds from the moment a tree's init arrives; infinity: never."""
        self.task = task
        self.timeout = timeout
        self._statistics = LedgerStatistics()
        self._missing = np.zeros(0, dtype=np.uint64)
        self._owner = np.zeros(0, dtype=np.uint32)  # generation | USED, and OPEN while open
        self._deadline = np.zeros(0, dtype=np.float64)
        self._next_scan = math.inf

    def init(self, roots: U64, xors: U64, now: float) -> U64:
        """Opens trees; returns those already complete (a row that nobody reads).

        A slot opens again only under a newer generation.  If its former tree is open even so, the spout has settled
        that one by itself (its manager had a new life while the init waited for credit): it is lost, and no verdict
        leaves for it.
        """
        slots = slots_of(roots)
        if not _distinct(slots):
            # A slot twice in one column would be one tree with two owners: the first wins.
            _, first = np.unique(slots, return_index=True)
            self._statistics.late += len(slots) - len(first)
            roots, xors, slots = roots[first], xors[first], slots[first]
        if len(slots):
            self._grow(int(slots.max()) + 1)
        generations = generations_of(roots)
        owners = self._owner[slots]
        ahead = (generations - owners) & _GENERATION
        newer = (owners == 0) | (ahead - np.uint32(1) < _NEWER)
        if not newer.all():
            self._statistics.late += int(len(newer) - np.count_nonzero(newer))
            roots, xors, slots = roots[newer], xors[newer], slots[newer]
            owners, generations = owners[newer], generations[newer]
        superseded = int(np.count_nonzero(owners & OPEN))
        self._statistics.lost += superseded
        self._statistics.pending -= superseded
        deadline = now + self.timeout
        self._missing[slots] = xors
        self._owner[slots] = generations | (USED | OPEN)
        self._deadline[slots] = deadline
        self._next_scan = min(self._next_scan, deadline)
        self._statistics.opened += len(roots)
        self._statistics.pending += len(roots)
        complete = xors == 0
        return self._close(roots[complete], slots[complete], "acked") if complete.any() else NO_IDS

    def ack(self, roots: U64, xors: U64) -> U64:
        """Applies acks; returns the trees they completed."""
        roots, xors = fold(roots, xors)
        slots = slots_of(roots)
        known = self._open(roots, slots)
        if not known.all():
            roots, xors, slots = roots[known], xors[known], slots[known]
        left = self._missing[slots] ^ xors
        self._missing[slots] = left
        complete = left == 0
        if not complete.all():
            roots, slots = roots[complete], slots[complete]
        return self._close(roots, slots, "acked")

    def fail(self, roots: U64) -> U64:
        """Fails trees at once; returns those that were open."""
        return self._settle(roots, "failed")

    def lose(self, roots: U64) -> U64:
        """Settles trees of which a part was dropped; returns those that were open."""
        return self._settle(roots, "lost")

    def prolong(self, roots: U64, now: float) -> None:
        """The time of trees that are open begins anew."""
        roots = distinct(roots)
        slots = slots_of(roots)
        slots = slots[self._open(roots, slots)]
        if len(slots):
            self._deadline[slots] = now + self.timeout
            self._next_scan = min(self._next_scan, now + self.timeout)  # an update may have made the timeout shorter

    def lose_all(self) -> U64:
        """Settles every open tree as lost."""
        slots = np.flatnonzero(self._owner & OPEN)
        return self._close(self._roots_at(slots), slots, "lost")

    def expire(self, now: float) -> U64:
        """Settles the trees whose deadline has passed."""
        if now < self._next_scan:
            return NO_IDS
        slots = np.flatnonzero(self._owner & OPEN)
        due = self._deadline[slots] <= now
        out = self._close(self._roots_at(slots[due]), slots[due], "timed_out")
        waiting = slots[~due]
        self._next_scan = float(self._deadline[waiting].min()) if len(waiting) else math.inf
        return out

    def clear(self) -> None:
        """A new life of the spout: its former trees get no verdict, nobody waits for one."""
        self._owner[:] = 0
        self._next_scan = math.inf
        self._statistics.pending = 0

    @property
    def next_deadline(self) -> float:
        """No tree can time out before; the time to call :meth:`expire`."""
        return self._next_scan

    @property
    def bytes_per_slot(self) -> int:
        """Memory of one pending tree."""
        return self._missing.itemsize + self._owner.itemsize + self._deadline.itemsize

    def statistics(self) -> LedgerStatistics:
        """The counters, live."""
        return self._statistics

    def _open(self, roots: U64, slots: Slots) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        owners = generations_of(roots) | (USED | OPEN)
        known: np.ndarray[tuple[int], np.dtype[np.bool_]] = slots < len(self._owner)
        if known.all():
            known = self._owner[slots] == owners
        else:  # a slot that was never opened: late too, and no reason to grow
            known[known] = self._owner[slots[known]] == owners[known]
        self._statistics.late += int(len(known) - np.count_nonzero(known))
        return known

    def _settle(self, roots: U64, verdict: str) -> U64:
        roots = distinct(roots)
        slots = slots_of(roots)
        known = self._open(roots, slots)
        return self._close(roots[known], slots[known], verdict)

    def _close(self, roots: U64, slots: Slots, verdict: str) -> U64:
        if len(roots):
            self._owner[slots] &= ~OPEN
            counters = self._statistics
            setattr(counters, verdict, getattr(counters, verdict) + len(roots))
            counters.pending -= len(roots)
        return roots

    def _roots_at(self, slots: Slots) -> U64:
        return make_roots(self.task, slots, self._owner[slots] & _GENERATION)

    def _grow(self, size: int) -> None:
        """Slots beyond the table: double it, up to all 2^20, so that memory follows what is pending."""
        if size <= len(self._owner):
            return
        size = min(SLOTS, max(1024, 1 << (size - 1).bit_length()))
        extra = size - len(self._owner)
        self._missing = np.concatenate((self._missing, np.zeros(extra, dtype=np.uint64)))
        self._owner = np.concatenate((self._owner, np.zeros(extra, dtype=np.uint32)))
        self._deadline = np.concatenate((self._deadline, np.zeros(extra, dtype=np.float64)))


def _distinct(slots: Slots) -> bool:
    """Whether no slot stands twice, as far as that shows at a glance: ascending, or so in two parts (a ring's end)."""
    falls = np.flatnonzero(slots[1:] <= slots[:-1])
    return len(falls) == 0 or (len(falls) == 1 and bool(slots[-1] < slots[0]))
