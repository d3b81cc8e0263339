"""A command that runs in a container of a pod, and its three streams (``pods/exec``)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ardea.errors import Unreachable

_CHUNK = 1 << 15


class Exec:
    """One command; what it reads and prints goes through one connection, that may break at any time.

    Every call raises Unreachable when the connection breaks.
    """

    def __init__(self, session: Any, what: str) -> None:
        """``session`` is a ``WSClient``, open; ``what`` is done here, for messages: ``run python in POD``."""
        self._session, self._what = session, what
        self._rest = b""

    def write(self, data: bytes) -> None:
        """To its stdin."""
        with self._broken():
            for begin in range(0, len(data), _CHUNK):
                self._session.write_stdin(data[begin : begin + _CHUNK])

    def read_line(self, seconds: float) -> bytes | None:
        """The next line of its stdout, without the end; None: there is none within ``seconds``.

        Raises:
            Unreachable: it has ended, and what it said of that on stderr.
        """
        deadline = time.monotonic() + seconds
        with self._broken():
            while True:
                self._rest += self._session.read_stdout(timeout=0)
                line, end, rest = self._rest.partition(b"\n")
                if end:
                    self._rest = rest
                    return line
                if not self._session.is_open():
                    said = self._session.read_stderr(timeout=0).decode(errors="replace").strip()
                    raise Unreachable(f"cannot {self._what}: it has ended{': ' if said else ''}{said[-500:]}")
                if (left := deadline - time.monotonic()) <= 0:
                    return None
                self._session.update(timeout=left)

    def run(self, stdout: Callable[[bytes], object], stderr: Callable[[bytes], object]) -> int:
        """Passes on what it prints until it ends; returns its exit code."""
        with self._broken():
            while self._session.is_open():
                self._session.update(timeout=1)
                for waits, read, write in (
                    (self._session.peek_stdout, self._session.read_stdout, stdout),
                    (self._session.peek_stderr, self._session.read_stderr, stderr),
                ):
                    if waits():
                        write(read())
            return int(self._session.returncode)

    def close(self) -> None:
        """Leaves it alone; it sees the end of its stdin.  Can be repeated."""
        self._session.close()
        self._session.sock.shutdown()  # the former leaves a socket open whose other end has closed it

    @contextmanager
    def _broken(self) -> Iterator[None]:
        from websocket import WebSocketException

        try:
            yield
        except (WebSocketException, OSError, TypeError, ValueError) as error:  # no exit code, but what went wrong
            raise Unreachable(f"cannot {self._what}: the connection broke: {error}") from error
