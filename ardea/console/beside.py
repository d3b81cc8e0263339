"""A console beside a run: a process of its own.  It ends with the process that started it, however that ends."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from typing import Self

import msgspec

from ardea.console import serving
from ardea.console.tokens import Hosts, Tokens
from ardea.scheduler.registry import Place

ENDS_WITHIN = 5.0
"""Seconds that its process has to end; it has nothing to keep."""


class _Opened(msgspec.Struct, frozen=True, kw_only=True):
    """``socket``: the number of the descriptor."""

    place: Place
    socket: int
    view: str
    act: str


class Beside:
    """Of one place, on loopback, as long as the context lasts.

    Args:
        place: where the topologies are.

    Raises:
        ClusterError: it cannot listen.
    """

    def __init__(self, place: Place) -> None:
        self._place, self._tokens = place, Tokens.fresh(act=True)
        self._opened = serving.listen(serving.LOOPBACK, 0)
        self._process: subprocess.Popen[bytes] | None = None

    def link(self, topology: str) -> str:
        """What a person opens to see that one first."""
        return serving.link(self._opened, self._tokens.act or "", topology)

    def __enter__(self) -> Self:
        number = self._opened.fileno()
        self._process = process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[number],
            start_new_session=True,  # Ctrl-C drains the run, which people go on looking at
        )
        assert process.stdin is not None, "it is a pipe"
        told = _Opened(place=self._place, socket=number, view=self._tokens.view, act=self._tokens.act or "")
        with contextlib.suppress(OSError):  # it has ended: its own words are on stderr, and the run goes on
            process.stdin.write(msgspec.json.encode(told) + b"\n")
            process.stdin.flush()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        process = self._process
        assert process is not None, "the context was entered"
        assert process.stdin is not None, "it is a pipe"
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """Returns when a signal has stopped it; ends with its stdin, at once."""
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=_Opened)
    threading.Thread(target=_end_with_stdin, name="stdin", daemon=True).start()
    with socket.socket(fileno=told.socket) as opened:
        serving.serve(told.place, opened, Tokens(told.view, told.act), Hosts(), ready=lambda: None)
    return 0


def _end_with_stdin() -> None:
    with contextlib.suppress(OSError):
        while os.read(0, 4096):
            pass
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
