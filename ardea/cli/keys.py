"""What is typed at a terminal, a key at a time, while a verb draws."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import Any, Self

_SEQUENCES = {
    b"\x1b[A": "up", b"\x1b[B": "down", b"\x1bOA": "up", b"\x1bOB": "down",
    b"\x1b[5~": "page up", b"\x1b[6~": "page down",
    b"\x1b[H": "home", b"\x1b[F": "end", b"\x1b[1~": "home", b"\x1b[4~": "end",
    b"\r": "enter", b"\n": "enter", b"\x7f": "erase", b"\b": "erase", b"\x1b": "escape",
}  # fmt: skip
_LONGEST = max(map(len, _SEQUENCES))


class Keys:
    """Within, keys come at once and are not echoed; Ctrl-C stays what it is.  Without a terminal nothing is typed."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._former: list[Any] = []
        self._typed = b""  # together, and not yet asked for

    def __enter__(self) -> Self:
        if self._fd is not None:
            self._former = termios.tcgetattr(self._fd)
            tty.setcbreak(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, self._former)

    def wait(self, seconds: float) -> str:
        """The next key, as itself or by a name such as ``page down``; empty: none within so long."""
        if self._fd is None:
            time.sleep(seconds)
            return ""
        if not self._typed and select.select([self._fd], [], [], max(0.0, seconds))[0]:
            self._typed = os.read(self._fd, 1024)
        key, self._typed = first_key(self._typed)
        return key


def first_key(typed: bytes) -> tuple[str, bytes]:
    """The first of what was typed together, and the rest; empty for a sequence that is not known."""
    for length in range(min(len(typed), _LONGEST), 0, -1):
        if (named := _SEQUENCES.get(typed[:length])) is not None and (named != "escape" or len(typed) == 1):
            return named, typed[length:]
    if typed.startswith(b"\x1b"):
        return "", b""
    text = typed.decode(errors="replace")
    return text[:1], text[1:].encode()
