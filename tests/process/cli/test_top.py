"""`ardea top` on a terminal of 80 columns and few lines, with somebody at its keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from tests.machine import out_of_patience, patient
from tests.process.cli.conftest import ARDEA
from tests.process.cli.verbs import acked, topology
from tests.process.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.thorough]
LINES = 14


class Terminal:
    """What a program shows on it, from its last frame on."""

    def __init__(self, *command: object) -> None:
        self._fd, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(
            list(map(str, command)), stdin=inside, stdout=inside, stderr=inside, env=environment, start_new_session=True
        )
        os.close(inside)
        self._shown = ""

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def shows(self, pattern: str, seconds: float = 20) -> None:
        """Waits for a frame in which a line has this."""
        began = time.monotonic()
        while not re.search(pattern, frame := self._frame()):
            assert not out_of_patience(began, seconds), frame
            if select.select([self._fd], [], [], 0.5)[0]:
                self._shown += os.read(self._fd, 1 << 16).decode(errors="replace")

    def _frame(self) -> str:
        last = self._shown.split("\x1b[H")[-1]
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", last)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._fd)


def test_keys_scroll_sort_filter_and_leave(start, ardea, state):
    run = start("run", topology("Steady"))
    eventually(lambda: acked(ardea, "Steady"), 60, "it works")
    terminal = Terminal(*ARDEA, "top", "Steady", "--state", state, "--interval", 0.5)
    try:
        terminal.shows(r"Memory")
        terminal.shows(r"q quits")
        terminal.type("s")
        terminal.shows(r"sorted by capacity")
        terminal.type("t")
        terminal.type("/num")
        terminal.shows(r"/num")
        terminal.type("\r")
        terminal.shows(r"only num")
        terminal.type("q")
        assert terminal.process.wait(patient(10)) == 0
    finally:
        terminal.close()
        run.terminate()
        assert run.wait(patient(30)) == 130
