"""The processes of a container, as their supervisors wrote them down."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from ardea.errors import ExitCode
from ardea.health.words import Trouble
from ardea.plan.names import container_name, of_a_task
from ardea.supervision.records import STATUS, Exit, have_ended, last_beat, read_exits, read_status
from ardea.supervision.spec import RESTARTED
from ardea.supervision.supervisor_state import BACKOFF, EARLY, SETTLED

CLOSE = SETTLED + BACKOFF[-1]
"""Seconds: deaths that follow one another within these belong together, for the back-off has not begun anew."""
CRASH_LOOP = 3
"""So many deaths that belong together are a crash loop."""
STANDS_STILL = 15.0
"""Seconds after which a supervisor that has not said that it is alive stands still."""
LONGEST = 1000
"""Characters that are kept of a reason: an author's exception may say anything."""
UNWATCHED = "unwatched"
"""The state of a process whose supervisor stands still: nobody would start it again."""


_TROUBLES = {
    "stuck": "it is in one call of user code; its log has the stack of every thread",
    "silent": "its rows wait: user code keeps the interpreter lock, in a call in C that does not give it up; "
    "its log has the stack of every thread",
    UNWATCHED: "its supervisor stands still: nobody would start it again",
}


class ProcessRow(msgspec.Struct, frozen=True):
    """One process.  ``container`` is None for the containers' own supervisors; times are Unix seconds.

    ``state`` is the supervisor's word (docs/supervisor.md), or ``unwatched``.  ``deaths`` counts those that belong
    together up to now, ``since`` is when the first of them was; ``crash_loop`` says so of three or more, in words that
    change only with the next death.
    """

    container: int | None
    name: str
    state: str
    pid: int | None
    life: int
    restarts: int
    last_end: float | None
    last_reason: str
    crash_loop: str
    deaths: int = 0
    since: float | None = None


def rows(folder: Path, container: int | None, now: float) -> list[ProcessRow]:
    """Those of the supervisor of this folder; ``now`` in Unix seconds."""
    status = read_status(folder)
    unwatched = status.get("state") == "running" and now - last_beat(folder) > STANDS_STILL
    found, ended = [], have_ended(folder)
    for name, process in status.get("processes", {}).items():
        ends = read_exits(folder, name) if name in ended else []
        bad = together(ends, now)
        found.append(
            ProcessRow(
                container=container,
                name=name,
                state=UNWATCHED if unwatched else process["state"],
                pid=process["pid"],
                life=process["life"],
                restarts=max(0, process["life"] - 1),
                last_end=ends[-1].time if ends else None,
                last_reason=ends[-1].reason[:LONGEST] if ends else "",
                crash_loop=crash_loop(ends, now),
                deaths=len(bad),
                since=bad[0].time if bad else None,
            )
        )
    return found


def supervisors(folder: Path) -> list[Path]:
    """The folders of a container's supervisors: its own, or those in it, one a process, as in a pod."""
    return [folder, *sorted(status.parent for status in folder.glob(f"*/{STATUS}"))]


def trouble(row: ProcessRow) -> Trouble | None:
    """What is wrong with a process; None: nothing."""
    who = called(row)
    if row.crash_loop:
        return Trouble(who, row.since, row.crash_loop, crashing=True)
    why = _TROUBLES.get(row.state)
    return None if why is None else Trouble(who, None, why)


def called(row: ProcessRow) -> str:
    """What people call it: ``count-0``, ``container-1/stream-manager``."""
    if row.container is None or of_a_task(row.container, row.name):
        return row.name
    return f"{container_name(row.container)}/{row.name}"


def crash_loop(ends: Sequence[Exit], now: float) -> str:
    """What to say of a process that dies again and again; empty if it does not.  ``ends``: oldest first."""
    bad = together(ends, now)
    if len(bad) < CRASH_LOOP:
        return ""
    return f"died {len(bad)} times in {bad[-1].time - bad[0].time:.0f} s: {said(bad[-1])}"[:LONGEST]


def together(ends: Iterable[Exit], now: float) -> list[Exit]:
    """The deaths that belong together up to now; none if the last was long ago."""
    bad = deaths(ends)
    if not bad or now - bad[-1].time >= CLOSE:
        return []
    first = len(bad) - 1
    while first > 0 and bad[first].time - bad[first - 1].time < CLOSE:
        first -= 1
    return bad[first:]


def deaths(ends: Iterable[Exit]) -> list[Exit]:
    """Those that were neither orderly nor asked for."""
    return [end for end in ends if end.code != ExitCode.OK and said(end) != RESTARTED]


def said(end: Exit) -> str:
    """What the process said of its end, else how it ended."""
    within = re.fullmatch(r"[^(]*\((.*)\)", end.reason, re.DOTALL)
    words = (within[1] if within else end.reason).removeprefix(f"{end.name}: ")
    return f"exited with 0 {words}" if words == EARLY else words
