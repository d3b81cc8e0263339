"""A supervisor's folder: one supervisor at a time, and never two processes of one name in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path

from ardea.supervision import records


class Folder:
    """Held by a lock, which each process of the supervisor holds, too, until it has ended."""

    def __init__(self, path: Path) -> None:
        """Touches nothing."""
        self.path = path.absolute()
        self._lock_fd: int | None = None
        self._shown: object = None

    @property
    def lock_fd(self) -> int:
        """What processes inherit."""
        assert self._lock_fd is not None, "the folder has not been taken"
        return self._lock_fd

    def take(self) -> bool:
        """Whether the folder is this supervisor's now; False: a process of a former one still lives.

        One that starts is not about to be ended, whatever was said of the former one.

        Raises:
            OSError: the folder cannot be written.
        """
        if self._lock_fd is None:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / records.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        self.beat()
        (self.path / records.LEAVING).unlink(missing_ok=True)
        return True

    def beat(self) -> None:
        """Says that this supervisor is alive; to be repeated each second."""
        with contextlib.suppress(OSError):  # a full disk costs no processes
            os.utime(self.lock_fd)

    def show(self, status: dict[str, object]) -> None:
        """Writes ``status.json``, if there is news.

        Raises:
            OSError: it cannot be written.
        """
        if status != self._shown:
            self._shown = status
            records.write_status(self.path, status)

    def close(self) -> None:
        """Lets it go.  Can be repeated."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None
