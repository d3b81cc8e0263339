"""Documents for those who may only look: what rows contain is left out, and what exceptions say of it.  Pure."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from ardea.console.doings import ActionDocument
from ardea.documents.figures import StatusDocument
from ardea.documents.top import TopDocument
from ardea.documents.topologies import DescriptionDocument, TopologyDocument
from ardea.health import Health, ProcessRow
from ardea.plan.change import UpdateProgress
from ardea.scheduler.control import StoryEvent
from ardea.snapshots.savepoint import SavepointProgress
from ardea.snapshots.status import SnapshotStatus

_ROWS = re.compile(
    r"(?P<raised>\b(?:raised|cannot commit:) [\w.]+): .*"
    r"|(?P<refuses>\brefuses) the row .*"
    r"|; the last error: .*"
    r"| \((?:tuple|the first of [\d,]+ tuples,) .*",
    re.DOTALL,
)
"""From where on a text of a master may have values in it."""
T = TypeVar("T", bound=TopologyDocument)
D = TypeVar("D", bound=DescriptionDocument)
W = TypeVar("W", bound=TopDocument)
P = TypeVar("P", UpdateProgress | None, SavepointProgress | None)


def cut(text: str) -> str:
    """The text up to where values of rows may begin: ``count-0 raised ValueError``, ``… refuses a row``."""
    return _ROWS.sub(lambda m: m["raised"] or (f"{m['refuses']} a row" if m["refuses"] else ""), text)


def of_topology(document: T) -> T:
    """A row of the list."""
    return msgspec.structs.replace(document, health=_health(document.health))


def of_description(document: D) -> D:
    """What is known of a topology."""
    return msgspec.structs.replace(
        of_topology(document),
        reason=cut(document.reason),
        master_silent=None if document.master_silent is None else cut(document.master_silent),
        status=None if document.status is None else _status(document.status),
        processes=[_process(row) for row in document.processes],
    )


def of_top(document: W) -> W:
    """What its components and tasks do."""
    return msgspec.structs.replace(document, health=_health(document.health), snapshots=_snapshots(document.snapshots))


def of_action(document: ActionDocument) -> ActionDocument:
    """A verb that is under way, or was the last one."""
    found = document.problem
    if found is not None:
        found = msgspec.structs.replace(found, what=cut(found.what))
    return msgspec.structs.replace(document, said=list(map(cut, document.said)), problem=found)


def _status(status: StatusDocument) -> StatusDocument:
    """Who has raised is kept (``erring``); what was raised needs the token to act, as the exceptions do."""
    return msgspec.structs.replace(
        status,
        errors=[],
        exceptions=[],
        reason=cut(status.reason),
        begins=cut(status.begins),
        update=_reasoned(status.update),
        savepoint=_reasoned(status.savepoint),
        stories={
            name: [StoryEvent(ago, cut(what), times) for ago, what, times in events]
            for name, events in status.stories.items()
        },
        health=_health(status.health),
        supervised=[_process(row) for row in status.supervised],
        snapshots=_snapshots(status.snapshots),
    )


def _reasoned(progress: P) -> P:
    return progress if progress is None else msgspec.structs.replace(progress, reason=cut(progress.reason))


def _health(health: Health | None) -> Health | None:
    if health is None:
        return None
    return Health(health.state, [msgspec.structs.replace(each, why=cut(each.why)) for each in health.troubles])


def _process(row: ProcessRow) -> ProcessRow:
    if not (row.last_reason or row.crash_loop):
        return row
    return msgspec.structs.replace(row, last_reason=cut(row.last_reason), crash_loop=cut(row.crash_loop))


def _snapshots(status: SnapshotStatus | None) -> SnapshotStatus | None:
    if status is None:
        return None
    last = status.rollback
    return msgspec.structs.replace(
        status,
        why=cut(status.why),
        waits=list(map(cut, status.waits)),
        rollback=None if last is None else msgspec.structs.replace(last, cause=cut(last.cause)),
        sinks=[msgspec.structs.replace(each, why=cut(each.why)) for each in status.sinks],
    )
