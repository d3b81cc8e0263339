"""The standard streams of the command: what becomes of it when one of them is full, closed, or read by nobody.

stderr is for whoever looks: what cannot be written there is dropped.  stdout is what was asked for: the first write
that fails is an error, once.
"""

from __future__ import annotations

import errno
import io
import os
import sys

from ardea.errors import ArdeaError


class Unwritable(ArdeaError):  # noqa: N818
    """stdout takes no more.  ``unread``: whoever read it has gone, as ``head`` does."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"stdout cannot be written: {os.strerror(error.errno or errno.EIO)}")
        self.unread = error.errno == errno.EPIPE


class _Stdout(io.FileIO):
    _lost = False

    def write(self, data: bytes, /) -> int | None:  # type: ignore[override]
        if not self._lost:
            try:
                return super().write(data)
            except OSError as error:
                self._lost = True  # Python would try again at its end, and complain
                raise Unwritable(error) from error
        return len(data)


class _Stderr(io.FileIO):
    def write(self, data: bytes, /) -> int | None:  # type: ignore[override]
        try:
            return super().write(data)
        except OSError:
            return len(data)


def guard() -> None:
    """Puts them in place.  One that is closed is opened on nothing, so that no file of ours becomes it by accident."""
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):  # a closed stdout refuses what is written
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, mode)
    sys.stdout, sys.stderr = _text(_Stdout(1, "w", closefd=False)), _text(_Stderr(2, "w", closefd=False))


def _text(raw: io.FileIO) -> io.TextIOWrapper:
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=sys.stdout.encoding if sys.stdout is not None else "utf-8",
        errors="backslashreplace",
        line_buffering=raw.isatty() or raw.fileno() == 2,
    )
