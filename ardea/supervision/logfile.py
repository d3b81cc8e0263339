"""Where the output of one process goes: a log file (whole lines, rotated by size, one writer), or stdout."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

from ardea import logs


class LogFile:
    """Appends to ``path``; ``path.1`` is the file before, and so on.

    A line is never cut in two, so a file is larger than ``limit`` only by a line that is.  A disk that is full costs
    the lines that do not fit, and the log says how many bytes; it never raises.
    """

    def __init__(
        self, path: Path, limit: int, files: int, form: logs.Format = "text", wall: Callable[[], float] = time.time
    ) -> None:
        """``form``: of the supervisor's own lines."""
        self.path = path
        self._form: logs.Format = form
        self._wall = wall
        self._limit = limit
        self._files = files
        self._lost = 0
        self._fd = -1
        self._size = 0
        self._whole = True  # the last byte written ended a line
        path.parent.mkdir(parents=True, exist_ok=True)
        self._open()

    def write(self, data: bytes) -> None:
        """Append the output of the process."""
        if self._lost and not self._note_loss():
            self._lost += len(data)
            return
        while data:
            cut = self._cut(data)
            if cut:
                self._lost += cut - self._append(data[:cut])
                data = data[cut:]
            else:
                self._rotate()

    def mark(self, text: str) -> None:
        """Append a line of the supervisor's own."""
        self.write((b"" if self._whole else b"\n") + logs.mark(text, self._form, self._wall()))

    def keep(self) -> None:
        """Nothing is to be done: all of it is in files."""

    def repeat(self) -> None:
        """As :meth:`keep`."""

    def close(self) -> None:
        """Close the file; no more writes."""
        os.close(self._fd)

    def _cut(self, data: bytes) -> int:
        """How much of ``data`` goes into the present file; 0: it is full."""
        room = self._limit - self._size
        if len(data) <= room:
            return len(data)
        cut = data.rfind(b"\n", 0, max(room, 0)) + 1
        if cut or (self._whole and self._size):
            return cut
        return data.find(b"\n") + 1 or len(data)  # a line is under way, or longer than a file: finish it

    def _note_loss(self) -> bool:
        """Say how much was lost, if there is room again."""
        end = b"" if self._whole else b"\n"
        text = f"{self._lost} bytes of output lost: the log could not be written"
        notice = end + logs.mark(text, self._form, self._wall())
        if self._append(notice) < len(notice):
            return False
        self._lost = 0
        return True

    def _append(self, data: bytes) -> int:
        """How many bytes went to the disk."""
        try:
            written = os.write(self._fd, data)
        except OSError:
            return 0
        self._size += written
        self._whole = data[written - 1 : written] == b"\n"
        return written

    def _rotate(self) -> None:
        full = self._fd
        try:
            names = [self.path, *(self.path.with_name(f"{self.path.name}.{n}") for n in range(1, self._files))]
            used = itertools.takewhile(Path.exists, names[:-1])
            for newer, older in reversed([*zip(used, names[1:], strict=False)]):
                newer.rename(older)
            self.path.unlink(missing_ok=True)  # if one file is kept, nothing was renamed
            self._open()
            os.close(full)
        except OSError:
            self._fd, self._size = full, 0  # goes on in the full file, and tries again a file later

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = os.fstat(self._fd).st_size
        self._whole = not self._size or os.pread(self._fd, 1, self._size - 1) == b"\n"


KEPT = 64 << 10
"""Bytes of the output that :meth:`StandardOutput.keep` writes."""


class StandardOutput:
    """Passes the output on to whoever keeps this process' own, as kubelet does for PID 1 of a container.

    ``path``: where its end can be kept for the next PID 1.
    """

    def __init__(
        self, path: Path, fd: int = 1, form: logs.Format = "text", wall: Callable[[], float] = time.time
    ) -> None:
        """``form``: of the supervisor's own lines."""
        self._form: logs.Format = form
        self._wall = wall
        self._path = path
        self._fd = fd
        self._whole = True
        self._last = bytearray()

    def write(self, data: bytes) -> None:
        """Waits for a reader that is slow; one that is gone misses it."""
        self._whole = data[-1:] == b"\n" if data else self._whole
        self._last += data
        if len(self._last) > 2 * KEPT:
            del self._last[: -KEPT - 1]
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except OSError:
                return

    def mark(self, text: str) -> None:
        """A line of the supervisor's own."""
        self.write((b"" if self._whole else b"\n") + logs.mark(text, self._form, self._wall()))

    def keep(self) -> None:
        """Writes the last lines, of at most KEPT bytes together, to ``path``; OSError if it cannot."""
        last = self._last[-KEPT - 1 :]  # with the end of the line before
        if len(last) > KEPT:
            del last[: last.find(b"\n") + 1 or 1]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(last)

    def repeat(self) -> None:
        """Passes on what a former PID 1 kept there, if it did; OSError if it cannot be read."""
        if self._path.exists():
            self.write(self._path.read_bytes())

    def close(self) -> None:
        """Nothing is to be closed: stdout is the process' own."""
