"""Which events the root of a topology gets of its snapshots, for ``kubectl get events``.  Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from ardea.scheduler.control import Status
from ardea.snapshots.manifest import text_of
from ardea.snapshots.savepoint import SavepointProgress
from ardea.snapshots.status import SnapshotStatus

ALARMING = 3
"""Snapshots abandoned in a row."""
ROLLBACKS_EVERY = 60.0
"""Seconds between two events of rollbacks: one that comes sooner waits for the next event, which counts them."""


class News(NamedTuple):
    """``kind`` is Normal or Warning, ``reason`` for programs, ``message`` for people."""

    kind: str
    reason: str
    message: str


class SnapshotEvents:
    """Of one acting master, which is asked for its status again and again."""

    def __init__(self) -> None:
        self._alarmed = False
        self._rollbacks = 0  # of which there has been an event
        self._said_at = -math.inf
        self._savepoint = ""

    def news(self, status: Status, now: float) -> Iterator[News]:
        """What has come since the last status; ``now``: in seconds."""
        if status.savepoint is not None:
            yield from self._saved(status.savepoint)
        if status.snapshots is not None:
            yield from self._abandoned(status.snapshots)
            yield from self._rolled_back(status.snapshots, now)

    def _saved(self, savepoint: SavepointProgress) -> Iterator[News]:
        if savepoint.step == "done" and savepoint.id != self._savepoint:
            self._savepoint = savepoint.id
            what = f"snapshot {text_of(savepoint.number)}, {savepoint.bytes:,} bytes in {savepoint.files:,} files"
            yield News("Normal", "SavepointWritten", f"{what}, in {savepoint.folder}")

    def _abandoned(self, snapshots: SnapshotStatus) -> Iterator[News]:
        alarming = snapshots.abandoned >= ALARMING
        if alarming and not self._alarmed:
            yield News(
                "Warning",
                "SnapshotsAbandoned",
                f"{snapshots.abandoned} snapshots in a row were abandoned, the last one because of {snapshots.why}",
            )
        elif self._alarmed and snapshots.last is not None and not snapshots.abandoned:
            yield News("Normal", "SnapshotCommitted", f"snapshot {snapshots.last.number} counts")
        self._alarmed = alarming or (self._alarmed and snapshots.abandoned > 0)

    def _rolled_back(self, snapshots: SnapshotStatus, now: float) -> Iterator[News]:
        number = snapshots.rollbacks - self._rollbacks
        if number > 0 and snapshots.rollback is not None and now - self._said_at >= ROLLBACKS_EVERY:
            self._rollbacks, self._said_at = snapshots.rollbacks, now
            more = f"; {number} rollbacks since the last event" if number > 1 else ""
            yield News("Warning", "RolledBack", f"{snapshots.rollback.cause}{more}")
