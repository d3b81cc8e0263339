"""In which timeline a task works, and what of the master's order it has still to obey (docs/snapshots.md).

Pure.  The order is a state, not an event: the newest says all, and nothing depends on having seen each.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ardea.protocol.wire_pb2 import Blamed, SnapshotOrder


class Fate(enum.Enum):
    """What becomes of a batch, a marker or a barrier."""

    TAKEN = "it is of the task's own timeline"
    VOID = "its timeline is over: nobody looks at it"
    WAITS = "its timeline has begun, and the task has not put back its state yet"


class Timeline:
    """Of one life of a task.

    ``number``: the timeline whose state the task has; 0: none yet.  ``taken``: the last snapshot that it took its state
    for; to begin with, the one that it was put back to.
    """

    def __init__(self, task: int, life: int) -> None:
        self.number = self.taken = 0
        self._task, self._life = task, life
        self._order = SnapshotOrder()
        self._takes_part = False  # whether the ordered timeline counts on this life of the task
        self._version = 0  # of the order: the master's term, and its own
        self._broken = False

    def ordered(self, order: SnapshotOrder, version: int) -> bool:
        """Whether this one is newer than all before it; ``version`` is its master's term and its own."""
        if version <= self._version:
            return False
        self._order, self._version = order, version
        self._takes_part = order.lives.get(self._task) == self._life
        return True

    @property
    def rolls_back(self) -> bool:
        """Whether the task must put back the state of :attr:`snapshot`, and say :meth:`restored`."""
        return self._order.timeline > self.number and self._takes_part

    @property
    def wanted(self) -> int:
        """The timeline that is ordered."""
        return self._order.timeline

    @property
    def snapshot(self) -> int:
        """The one that the ordered timeline began from; 0: it began with nothing."""
        return self._order.restore

    def took(self, number: int) -> None:
        """The task has taken its state for that snapshot."""
        self.taken = max(self.taken, number)

    def restored(self) -> None:
        """The state of :attr:`snapshot` is put back; the ordered timeline is the task's own."""
        self.number, self._broken = self._order.timeline, False
        self.taken = self._order.restore

    def left(self) -> None:
        """The state is not there after all."""
        self.number = self.taken = 0

    def ended(self) -> None:
        """An error has ended the task's part in its timeline: nothing leaves it before it is rolled back."""
        self._broken = True

    @property
    def works(self) -> bool:
        """Whether rows may be processed and barriers passed."""
        return 0 < self.number == self._order.timeline and self._takes_part and not self._broken

    @property
    def emits(self) -> bool:
        """Whether a spout may emit: a snapshot counts that it could go back to."""
        return self.works and self._order.committed > 0

    @property
    def begun(self) -> int:
        """The snapshot that a spout is to take its state for; 0: none."""
        return self._order.begun if self.works and self._order.begun > self.taken else 0

    @property
    def ends(self) -> int:
        """The snapshot with which the topology ends, under way or committed; 0: it does not end."""
        return self._order.final if self.works else 0

    @property
    def over(self) -> bool:
        """Whether that one counts: nothing is left to do."""
        return 0 < self.ends == self.committed

    @property
    def committed(self) -> int:
        """The last snapshot that counts, as far as the task's own timeline has heard; 0: none."""
        return self._order.committed if self.works else 0

    @property
    def blamed(self) -> Sequence[Blamed]:
        """Who has ended timelines since the last commit; the same object until another order comes."""
        return self._order.blamed

    @property
    def abandoned(self) -> int:
        """No snapshot up to this one will ever count, but for the committed one."""
        return self._order.abandoned

    def fate(self, timeline: int) -> Fate:
        """Of what was sent in that one."""
        if timeline < self._order.timeline:
            return Fate.VOID
        return Fate.TAKEN if timeline == self.number and self.works else Fate.WAITS
