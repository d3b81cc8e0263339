"""Whether the record that a master has found is the last one: the state manager may have lost it, or hold an older one.

Pure.  The store of snapshots knows more, and so do the tasks.
"""

from __future__ import annotations

import msgspec

from ardea.snapshots.manifest import Manifest
from ardea.state.records import BlameFacts, TimelineRecord
from ardea.topology_master.forgotten import LOST

A_LEAP = 1 << 32
"""More timelines than can have been between two snapshots."""


class Doubts:
    """One master's.  ``surveyed``: the store has said what it has; ``heard``: the highest timeline of any task.

    The term tells little: a copy that was made in the last master's term has the same one as what was lost.
    """

    def __init__(self) -> None:
        self.surveyed, self.heard = False, 0
        self._error = ""

    def answered(self, record: TimelineRecord, newest: Manifest | None, error: str) -> TimelineRecord:
        """What to go on from; ``newest`` is the newest list in the store, ``error`` why nobody can say which one is.

        A newer snapshot of the same timeline counts there: all tasks have stored their parts, and only its record was
        not written, or is lost.  After any other one a timeline begins, far above all that may run.
        """
        self.surveyed, self._error = True, error
        if newest is None or newest.number <= record.committed:
            return record
        if record.tasks and newest.timeline == record.timeline:
            return msgspec.structs.replace(record, committed=newest.number, final=newest.final, blame=BlameFacts())
        timeline = max(newest.timeline, record.timeline) + A_LEAP
        return nobody_in(timeline, newest.number, final=newest.final)

    def contradicted(self, record: TimelineRecord) -> TimelineRecord | str | None:
        """By tasks that work in a later timeline: what to go on from, or why nothing can be; None: it is not.

        No timeline runs before it is stored.  A record of timeline 0 is that of a savepoint that was copied since the
        store was empty.
        """
        if not self.surveyed or self.heard <= record.timeline:
            return None
        if record.timeline and record.committed and not self._error:
            return nobody_in(self.heard, record.committed, final=record.final)
        return self._error or f"{LOST} of snapshots, and the store has none either"


def nobody_in(timeline: int, number: int, *, final: bool = False) -> TimelineRecord:
    """A timeline in which nobody works, at that snapshot."""
    return TimelineRecord(timeline=timeline, restore=number, committed=number, final=final)
