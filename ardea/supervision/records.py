"""What a supervisor writes into its folder, and how others read it.

lives/NAME           how often the process has been started here
reasons/NAME         what the present life of the process left as its reason to end
exits/NAME.jsonl     its last 20 ends
status.json          every process now
lock                 held by the supervisor and its processes; touched each second while the supervisor runs
leaving              left by others: this supervisor is about to be ended, with all of its pod
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ardea.errors import ClusterError, ExitCode
from ardea.supervision.spec import RESTARTED

KEPT_EXITS = 20
LOCK = "lock"
LEAVING = "leaving"
STATUS = "status.json"
EXITS = "exits"


@dataclass(frozen=True, slots=True)
class Exit:
    """One end of a process.  ``time`` is Unix seconds; ``code`` and ``signal`` exclude each other.

    ``again``: its supervisor starts it again; else it ended by itself, or with everything else.
    """

    name: str
    life: int
    pid: int | None
    code: int | None
    signal: str | None
    reason: str
    time: float
    again: bool = True


def replace(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a file so that readers see the old or the new text; ``durable``: also after a loss of power."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    with new.open("w") as file:
        file.write(text)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    new.rename(path)


def read_life(folder: Path, name: str) -> int:
    """How often ``name`` has been started in this folder; 0 if never.

    Raises:
        ClusterError: the file says something that is not a life.
    """
    path = folder / "lives" / name
    try:
        text = path.read_text().strip()
    except FileNotFoundError:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ClusterError(
            f"{name}: its life counter {path} holds {text[:40]!r}, not a number; {name} cannot be started",
            hint=f"peers refuse a life that they have seen: write one above the last of {folder / EXITS} into it",
        )
    return int(text)


def raise_life(folder: Path, name: str) -> int:
    """Count one more life of ``name``, on the disk before it begins."""
    life = read_life(folder, name) + 1
    replace(folder / "lives" / name, f"{life}\n", durable=True)
    return life


def write_reason(folder: Path, name: str, reason: str) -> None:
    """Leave why ``name`` is about to end: one line."""
    replace(folder / "reasons" / name, " ".join(reason.split()) + "\n")


def take_reason(folder: Path, name: str) -> str | None:
    """The reason that ``name`` left, if any; it is gone afterwards."""
    path = folder / "reasons" / name
    try:
        reason = path.read_text(errors="replace").strip()
        path.unlink()
    except FileNotFoundError:
        return None
    return reason or None


def read_exits(folder: Path, name: str) -> list[Exit]:
    """The last 20 ends of ``name``, oldest first."""
    try:
        lines = (folder / EXITS / f"{name}.jsonl").read_text().splitlines()
    except FileNotFoundError:
        return []
    return [Exit(**json.loads(line)) for line in lines]


def have_ended(folder: Path) -> set[str]:
    """The names of those that have ended at least once."""
    try:
        return {file.stem for file in (folder / EXITS).iterdir()}
    except FileNotFoundError:
        return set()


def final_end(folder: Path, name: str) -> Exit | None:
    """The end of ``name`` that no life follows: with 0, and believed, or with 78; None: there was none yet."""
    ends = read_exits(folder, name)
    if ends and ends[-1].code == ExitCode.PERMANENT and RESTARTED not in ends[-1].reason:
        return ends[-1]
    return next((end for end in ends if end.code == ExitCode.OK), None)


def write_exit(folder: Path, exit_: Exit) -> None:
    """Add one end to those of its process."""
    kept = [*read_exits(folder, exit_.name), exit_][-KEPT_EXITS:]
    lines = (json.dumps(dataclasses.asdict(each)) for each in kept)
    replace(folder / EXITS / f"{exit_.name}.jsonl", "".join(f"{line}\n" for line in lines))


def read_status(folder: Path) -> dict[str, Any]:
    """What the supervisor last wrote of itself; {} if there was never one here."""
    try:
        status: dict[str, Any] = json.loads((folder / STATUS).read_text())
    except FileNotFoundError:
        return {}
    return status


def last_beat(folder: Path) -> float:
    """When the supervisor of this folder last said that it is alive, in Unix seconds; 0: it never has."""
    try:
        return (folder / LOCK).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def is_last(folder: Path, name: str) -> bool:
    """Whether the supervisor has others, and all of them have ended for good."""
    processes = read_status(folder).get("processes", {})
    others = [process["state"] for other, process in processes.items() if other != name]
    return name in processes and bool(others) and set(others) <= {"finished", "failed"}


def write_status(folder: Path, status: dict[str, Any]) -> None:
    """Replace ``status.json``."""
    replace(folder / STATUS, json.dumps(status, indent=1) + "\n")
