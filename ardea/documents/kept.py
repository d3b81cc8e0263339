"""``ardea snapshots``."""

from __future__ import annotations

import msgspec

from ardea.config import Settings
from ardea.errors import NotFound
from ardea.scheduler.schedulers import Scheduler
from ardea.snapshots.kept import Kept
from ardea.snapshots.manifest import text_of


class KeptDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot or savepoint; ``at`` in Unix seconds, ``topology`` an id, ``folder`` null but for a savepoint."""

    number: str
    timeline: int
    at: float
    bytes: int
    files: int
    topology: str
    folder: str | None


class SnapshotsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``committed``: the snapshot that counts; ``savepoints``: those of the default place, the newest first."""

    topology: str
    committed: KeptDocument | None
    savepoints: list[KeptDocument]


def look(scheduler: Scheduler, name: str) -> tuple[SnapshotsDocument, str]:
    """What is kept of the topology of that name or id, and the mode that takes no snapshots; empty: it takes some.

    Raises:
        NotFound: there is no topology, and nothing of one.
    """
    try:
        with scheduler.find(name) as found:
            topology, committed = found.id, found.committed()
            settings = Settings.of(found.definition().shape.config)
    except NotFound:
        if not (kept := scheduler.savepoints(name)):
            raise
        topology, committed, mode = name, None, ""
    else:
        kept = scheduler.savepoints(name)
        mode = "" if settings.remembers else settings.reliability_mode
    rows = [_row(each) for each in kept]
    document = SnapshotsDocument(
        topology=topology, committed=None if committed is None else _row(committed), savepoints=rows
    )
    return document, mode


def _row(kept: Kept) -> KeptDocument:
    return KeptDocument(
        number=text_of(kept.number),
        timeline=kept.timeline,
        at=kept.at,
        bytes=kept.bytes,
        files=kept.files,
        topology=kept.topology,
        folder=kept.folder or None,
    )
