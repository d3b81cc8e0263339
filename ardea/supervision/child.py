"""A process and the supervisor's ends of its three pipes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from ardea.supervision import kernel

_CHUNK = 1 << 16
_LAST_CHUNKS = 16  # a pipe holds at most 1 MiB
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Process(Protocol):
    """What ``subprocess.Popen`` offers of a child."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None: it runs."""

    def wait(self) -> int:
        """As :meth:`poll`, once it has ended."""

    def send_signal(self, sig: signal.Signals, /) -> None:
        """Unless it has ended."""


Start = Callable[[Sequence[str], Mapping[str, str], Sequence[int], int], Process]
"""(argv, env, the three numbers of the parent link, output) -> a process that leads a group of its own."""


def execute(argv: Sequence[str], env: Mapping[str, str], parent_link: Sequence[int], output: int) -> Process:
    """Starts a process as every program is started."""
    return subprocess.Popen(
        argv,
        env={**env, "ARDEA_PARENT_LINK": ",".join(map(str, parent_link))},
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=parent_link,
        **kernel.apart(),  # a terminal's Ctrl-C is the supervisor's alone, and the group dies as one
    )


@dataclass(frozen=True, slots=True)
class Child:
    """A running process, leader of its own process group.

    ``parent_link_fd``: closing it ends the group; ``beat_fd``: a byte a beat; ``output_fd``: its stdout and stderr.
    """

    process: Process
    parent_link_fd: int
    beat_fd: int
    output_fd: int

    @classmethod
    def spawn(cls, argv: Sequence[str], env: Mapping[str, str], lock_fd: int, start: Start = execute) -> Self:
        """Start it; its parent link, its beats and ``lock_fd`` are the three numbers of ARDEA_PARENT_LINK.

        A ``start`` that fails may have started it all the same: such a process ends with its parent link.

        Raises:
            OSError: it cannot be started, for example because there is no such command.
        """
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            link_theirs, link_ours = _pipe(theirs, ours)
            beat_ours, beat_theirs = _pipe(ours, theirs)
            output_ours, output_theirs = _pipe(ours, theirs)
            for fd in (beat_ours, beat_theirs, output_ours):
                os.set_blocking(fd, False)
            given = (link_theirs, beat_theirs, lock_fd)
            process = start(argv, env, given, output_theirs)
            with contextlib.suppress(ProcessLookupError):  # it may have ended already
                kernel.arm_parent_link(link_theirs, process.pid)
            ours.pop_all()
        return cls(process, link_ours, beat_ours, output_ours)

    @property
    def pid(self) -> int:
        """Its process id, and its group's."""
        return self.process.pid

    def beats(self) -> bytes:
        """The beats since the last call; empty at the end."""
        return _read(self.beat_fd)

    def output(self) -> bytes:
        """Some of what it has printed; empty at the end."""
        return _read(self.output_fd)

    def last_output(self) -> bytes:
        """All that is left of it once the process has ended."""
        return _rest(self.output_fd)

    def last_beats(self) -> bytes:
        """As last_output."""
        return _rest(self.beat_fd)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; SIGKILL goes to all that it has started, too."""
        if number == signal.SIGKILL:
            self.kill_group()
        else:
            self.process.send_signal(number)

    def kill_group(self) -> None:
        """Also right after the process was reaped: a pid is not given again while its group has members."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: EPERM for a group of zombies
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give up our ends of the pipes."""
        for fd in (self.parent_link_fd, self.beat_fd, self.output_fd):
            os.close(fd)


def environment(cores: int | None) -> dict[str, str]:
    """This process's, with a word to libraries for arrays that may keep so many cores busy (None: all).

    And to Python: what is printed comes at once, and whatever it is; half a surrogate pair must not end a task.
    """
    said = cores is None or _THREADS[0] in os.environ  # the first speaks for the others, too
    threads = {} if said else dict.fromkeys(_THREADS, str(cores))
    return {**threads, **os.environ, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8:backslashreplace"}


def reap_orphans(ours: set[int]) -> None:
    """What PID 1 owes to the orphans of its container: take every dead child that is not among ``ours``."""
    if sys.platform == "linux":  # nowhere else does anybody adopt
        with contextlib.suppress(ChildProcessError):
            while (dead := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) and dead.si_pid not in ours:
                os.waitpid(dead.si_pid, 0)


def _pipe(readers: contextlib.ExitStack, writers: contextlib.ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    readers.callback(os.close, read)
    writers.callback(os.close, write)
    return read, write


def _rest(fd: int) -> bytes:
    return b"".join(_read(fd) for _ in range(_LAST_CHUNKS))


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return b""
