"""What a master says of a topology's snapshots and rollbacks, and who prints it reads."""

from __future__ import annotations

import msgspec

from ardea.health.words import duration


class LastSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The snapshot that counts: ``number`` as files have it (``1.5``), ``ago`` and ``seconds`` of its commit.

    ``bytes``: all files that it needs; ``written``: of those, the files since the commit before.  ``slowest`` is the
    task that reported last, so many seconds after the begin, for ``aligned`` of which it awaited barriers.
    The numbers are None, and ``slowest`` is empty, where a former master has committed it.
    """

    number: str
    ago: float | None = None
    seconds: float | None = None
    bytes: int | None = None
    written: int | None = None
    slowest: str = ""
    slowest_seconds: float | None = None
    aligned: float | None = None


class UnderWay(msgspec.Struct, frozen=True):
    """The snapshot that is being taken, since so many seconds."""

    number: str
    seconds: float


class LastRollback(msgspec.Struct, frozen=True):
    """``kind`` is ``task``, ``manager``, ``error``, ``loss`` or ``update``, ``cause`` the same in words.

    ``restored``: seconds from the break until all tasks had their state; None: they do not have it yet.  ``bytes``: of
    the snapshot that they have gone back to; None: likewise, or it is not known.
    """

    kind: str
    cause: str
    ago: float
    restored: float | None = None
    bytes: int | None = None


class WaitingSink(msgspec.Struct, frozen=True):
    """A task whose rows are not all outside, though they count.

    ``intervals``: how many wait; ``seconds``: since the snapshot of the oldest came to count.  ``why``: what its commit
    has raised; empty: nothing, it is being written.
    """

    task: str
    intervals: int
    seconds: float
    why: str = ""

    @property
    def words(self) -> str:
        """In a sentence."""
        wait = "intervals wait" if self.intervals > 1 else "interval waits"
        why = self.why or "it is being written"
        return f"{self.intervals} {wait}, the oldest for {duration(self.seconds)}: {why}"


class SnapshotStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``state`` is the coordinator's (docs/snapshots.md), ``waits`` what that waits for, a sentence each.

    ``abandoned``: snapshots in a row, the last one because of ``why``.  ``rollbacks``: those that this master has seen.
    """

    mode: str
    state: str
    timeline: int
    interval: float
    last: LastSnapshot | None = None
    taking: UnderWay | None = None
    abandoned: int = 0
    why: str = ""
    rollbacks: int = 0
    rollback: LastRollback | None = None
    waits: list[str] = []
    sinks: list[WaitingSink] = []
