"""The child's half of the supervisor: beats, a reason to end, and never outliving the parent.

Every ``__main__`` that a supervisor may start calls ``attach()`` first, ``beat()`` about once a second from its I/O
loop, ``report()`` before it exits with an error, and returns ``ended(code)``.  Without a supervisor these do nothing.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ardea.errors import ExitCode, printable
from ardea.supervision.records import write_reason

LEAVES_WITHIN = 5.0
"""Seconds from the end of a process to its exit, whatever its threads do."""

_beat_fd: int | None = None


def attach() -> None:
    """Bind this process to its supervisor: it ends when the supervisor does, however that ends."""
    global _beat_fd  # a process has one parent
    fds = os.environ.pop("ARDEA_PARENT_LINK", None)
    if fds is None:
        return
    parent_link_fd, _beat_fd, lock_fd = map(int, fds.split(","))
    for fd in (parent_link_fd, _beat_fd, lock_fd):
        os.set_inheritable(fd, False)  # what this process starts is not this process
    faulthandler.enable(file=sys.stderr, all_threads=True)  # a segmentation fault in a library says at which line
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=True)
    threading.Thread(target=_end_with_parent, args=(parent_link_fd,), name="parent link", daemon=True).start()
    beat(in_user_code=True)  # until the I/O loop runs, imports may hold the interpreter lock


def beat(in_user_code: bool, *, same_call: bool = False) -> None:
    """Tell the supervisor that the I/O loop is alive, and whether the executor is inside a user's method now.

    ``same_call``: inside the one where it was at the last beat.  Never blocks; from any thread.
    """
    _say((b"c" if same_call else b"u") if in_user_code else b"i")


@contextlib.contextmanager
def beating(*, in_user_code: bool, every: float = 1.0) -> Iterator[None]:
    """Beats in the meantime, once in ``every`` so many seconds: for what takes long while no I/O loop runs.

    An import of the user's that waits for something is so not taken for a process that hangs, but named in time.
    """
    over = threading.Event()

    def again() -> None:
        while not over.wait(every):
            beat(in_user_code, same_call=True)

    beat(in_user_code)
    thread = threading.Thread(target=again, name="beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def ended(code: int) -> int:
    """The exit code.  A 0 is announced: the supervisor believes no other, since user code or a stranger may exit so.

    Python waits for threads of the author's that are no daemons, and for those of a pool; the process does not.
    """
    if code == ExitCode.OK:
        _say(b"d")
    if _beat_fd is not None:
        leaving = threading.Timer(LEAVES_WITHIN, _leave, (code,))
        leaving.daemon = True
        leaving.start()
    return code


def _leave(code: int) -> None:
    own = ("MainThread", "parent link", threading.current_thread().name)
    names = sorted(thread.name for thread in threading.enumerate() if thread.name not in own)
    with contextlib.suppress(OSError, ValueError):  # nobody reads any more
        print(f"the process has ended, and waits for none of its threads: {', '.join(names)}", file=sys.stderr)  # noqa: T201
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def wake_politely() -> None:
    """For the processes on the data path: waking up takes no core away from a process that works (Linux only).

    With every core busy, a message would otherwise interrupt whoever makes the next one, a batch at a time.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a sandbox may forbid it: slower, not wrong
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def life() -> int:
    """Which restart in place this is, counted from 1; 1 without a supervisor."""
    return int(os.environ.get("ARDEA_LIFE", "1"))


def holder() -> str:
    """Who holds the place of this process' container: its supervisor, by the id that it is known by."""
    return os.environ.get("ARDEA_SUPERVISOR_ID", f"pid-{os.getppid()}")


def report(reason: str) -> None:
    """Leave one line, what and where, that the supervisor writes beside this process' exit code."""
    folder = os.environ.get("ARDEA_FOLDER")
    if folder is not None:
        with contextlib.suppress(OSError):  # a full disk must not hide the error itself
            write_reason(Path(folder), os.environ["ARDEA_NAME"], printable(reason, most=2000))


def _say(byte: bytes) -> None:
    if _beat_fd is not None:
        # BlockingIOError: the supervisor has 64 Ki bytes to read first.  BrokenPipeError: it is gone, and so are we.
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(_beat_fd, byte)


def _end_with_parent(parent_link_fd: int) -> None:
    os.read(parent_link_fd, 1)  # nobody writes: this returns when the supervisor is gone
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # with whatever user code has started
    os._exit(ExitCode.TEMPORARY)
