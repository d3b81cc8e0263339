"""The processes of a local topology, as their supervisors wrote them down: readable without a master."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ardea.plan.names import CONTAINERS
from ardea.scheduler.exits import ExitRecords
from ardea.scheduler.hopeless_run import FRUITLESS_LIVES, deaths, said
from ardea.supervision.records import Exit, read_exits, read_status
from ardea.supervision.supervisor_state import BACKOFF, REMOVED, SETTLED

CLOSE = SETTLED + BACKOFF[-1]
"""Seconds: deaths that follow one another within these belong together, for the back-off has not begun anew."""


class ProcessRow(msgspec.Struct, frozen=True):
    """One process.  ``container`` is None for the containers' own supervisors; ``last_end`` is Unix seconds."""

    container: int | None
    name: str
    state: str
    pid: int | None
    life: int
    restarts: int
    last_end: float | None
    last_reason: str
    crash_loop: str


def processes(folder: Path, now: float) -> list[ProcessRow]:
    """All of a topology's folder, by container; ``now`` in Unix seconds."""
    found = _rows(folder, None, now)
    numbered = {int(path.name.rpartition("-")[2]): path for path in folder.glob(CONTAINERS)}
    for number, path in sorted(numbered.items()):
        found += _rows(path, number, now)
    return found


def metrics_ports(folder: Path) -> dict[int, int]:
    """Where each container of this topology serves ``/metrics``, by its number."""
    found = {}
    for file in folder.glob(f"{CONTAINERS}/metrics.port"):
        text = file.read_text().strip()
        if text:  # it is being written otherwise
            found[int(file.parent.name.rpartition("-")[2])] = int(text)
    return dict(sorted(found.items()))


def crash_loop(ends: Sequence[Exit], now: float) -> str:
    """What to say of a process that dies again and again; empty if it does not.  ``ends``: oldest first."""
    bad = deaths(ends)
    if not bad or now - bad[-1].time >= CLOSE:
        return ""
    first = len(bad) - 1
    while first > 0 and bad[first].time - bad[first - 1].time < CLOSE:
        first -= 1
    row = bad[first:]
    if len(row) < FRUITLESS_LIVES:
        return ""
    last = row[-1]
    lasted, ago = last.time - row[0].time, now - last.time
    return f"died {len(row)} times in {lasted:.0f} s, the last time {ago:.0f} s ago: {said(last)}"


def died_since(folder: Path, since: float) -> list[str]:
    """What each process of this topology said of its last death, if it died after ``since`` (Unix seconds)."""
    found = {}
    for name, ends in ExitRecords(folder, ()).read().items():
        late = [end for end in deaths(ends) if end.time >= since and said(end) != REMOVED]
        if late:
            found[name] = f"{late[-1].name} died: {said(late[-1])}"
    return [text for _, text in sorted(found.items())]


def _rows(folder: Path, container: int | None, now: float) -> list[ProcessRow]:
    rows = []
    for name, process in read_status(folder).get("processes", {}).items():
        ends = read_exits(folder, name)
        rows.append(
            ProcessRow(
                container=container,
                name=name,
                state=process["state"],
                pid=process["pid"],
                life=process["life"],
                restarts=max(0, process["life"] - 1),
                last_end=ends[-1].time if ends else None,
                last_reason=ends[-1].reason if ends else "",
                crash_loop=crash_loop(ends, now),
            )
        )
    return rows
