"""Waiting for a condition with a deadline, and knowing whether a process, and all that descends from it, is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.machine import out_of_patience

T = TypeVar("T")
_NOTHING = threading.Event()
_THREADS = 16
"""The place of their number after the state, in ``/proc/PID/stat``."""


def eventually(
    condition: Callable[[], T],
    seconds: float = 30.0,
    what: str | Callable[[], str] = "",
    *,
    since: float | None = None,
) -> T:
    """The first truthy result of ``condition``; AssertionError after ``seconds``, saying ``what`` was awaited.

    One that takes long, as a command does, is asked half of the time: what is awaited needs the cores, too.
    ``since``: ``time.monotonic()`` from which ``seconds`` count; None: now.
    """
    asked = time.monotonic()
    began = asked if since is None else since
    while not (result := condition()):
        now = time.monotonic()
        if out_of_patience(began, seconds):
            detail = what() if callable(what) else what
            raise AssertionError(f"not within {seconds:g} s: {detail or condition}; last result: {result!r}")
        _NOTHING.wait(min(max(0.01, now - asked), 1.0))
        asked = time.monotonic()
    return result


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped does not, one whose first thread has ended does."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    state, *rest = text[text.rindex(")") + 2 :].split()
    return state not in "ZX" or int(rest[_THREADS]) > 1


def heirs(mark: str) -> set[int]:
    """Pids of all that run and were started with ``mark``, ``NAME=value``, in their environment, or forked from one.

    What a process changes in its environment itself is not seen here, nor is it for one that was forked and never
    executed another program: that shows its parent's.
    """
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.add(int(entry.name))
        except OSError:
            continue  # gone meanwhile, or another user's
    return {pid for pid in found if alive(pid)}
