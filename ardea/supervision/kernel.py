"""What the kernel tells of a process, and what it does for us when the supervisor dies."""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TypedDict

from ardea.supervision.supervisor_state import Look

_TICK = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
_PAGE = os.sysconf("SC_PAGE_SIZE")
MOST_FILES = 1 << 16
"""Enough for a thousand containers, and for strangers who connect; some programs look at each that they may have."""


def look(pid: int) -> Look | None:
    """Memory, CPU time and state of a process; None where there is no /proc (macOS) or no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name, in parentheses, may hold anything; the fields are numbered from 3 behind it (proc_pid_stat(5)).
    fields = text[text.rindex(b")") + 2 :].split()
    cpu = (int(fields[14 - 3]) + int(fields[15 - 3])) / _TICK
    state = fields[0]
    return Look(int(fields[24 - 3]) * _PAGE, cpu, stopped=state in (b"T", b"t"), ready=state in (b"R", b"D"))


class MemoryKills:
    """Tells whether the kernel killed something for its memory, in this process' control group, since the last look.

    Its counters are ``memory.oom_control`` (version 1) and ``memory.events`` (version 2, where Kubernetes has all of a
    container killed, so that nobody is left to ask).
    """

    def __init__(self, root: Path = Path("/sys/fs/cgroup")) -> None:
        self._files = root / "memory" / "memory.oom_control", root / "memory.events"
        self._seen = self._count()

    def look(self) -> bool:
        """Whether the counter has risen."""
        seen, self._seen = self._seen, self._count()
        return self._seen > seen

    def _count(self) -> int:
        for file in self._files:
            with contextlib.suppress(OSError, ValueError):
                fields = dict(line.split() for line in file.read_text().splitlines())
                return int(fields.get("oom_kill", 0))
        return 0


def adopt() -> bool:
    """From now on, what descends from this process and loses its parent is this one's child; False: not here."""
    if sys.platform == "linux":
        import ctypes  # few supervisors need it

        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    else:  # noqa: RET505 -- mypy looks at one branch or the other
        return False


def open_files() -> int:
    """How many files a supervised process may have open: all that the system allows it, up to ``MOST_FILES``."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)


def allow_files() -> None:
    """From now on this process, and what it starts, may open as many: a shell's limit is 1,024 on most systems."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < open_files():
        with contextlib.suppress(ValueError, OSError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (open_files(), hard))


class Apart(TypedDict, total=False):
    """Arguments of ``subprocess.Popen``."""

    start_new_session: bool
    process_group: int


def apart() -> Apart:
    """How to start a process that leads a group of its own, which no terminal signals.

    Linux shares out the cores between sessions first (sched(7), autogroups): who needs no session of its own stays
    in this one's, where a process that waits for a core gets any that is free (decision 65).
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return {"process_group": 0}
    return {"start_new_session": True}


def arm_parent_link(fd: int, group: int) -> None:
    """Have the kernel kill a process group when the pipe behind ``fd`` loses its last writer (Linux).

    The thread of ``ardea.parent_link`` does the same everywhere, but needs the interpreter lock, which code in C may
    hold for ever.  The arrangement belongs to the open pipe, not to ``fd``: it stays when only the child has it.
    """
    if sys.platform == "linux":
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETOWN, -group)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
