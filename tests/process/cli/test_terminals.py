"""What people see on a terminal of 80 x 24 and of 160 x 50: run, top, describe and list, captured by tmux."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import patient
from tests.process.cli.conftest import ARDEA
from tests.process.cli.verbs import topology
from tests.process.waiting import alive, eventually

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.thorough,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux"),
]
SIZES = [(80, 24), (160, 50)]


class Terminals:
    """Windows of a tmux of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._socket, self._settings = folder / "tmux", folder / "tmux.conf"
        self._settings.write_text("set -g remain-on-exit on\nset -g status off\nset -g default-terminal screen\n")

    def _tmux(self, *words: object) -> str:
        command = ["tmux", "-S", self._socket, "-f", self._settings, *words]
        # Readline, which pytest loads, sets the size of the terminal where pytest runs.
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        return subprocess.run(
            [*map(str, command)], capture_output=True, text=True, check=True, timeout=patient(20), env=environment
        ).stdout

    def open(self, name: str, size: tuple[int, int], *verb: object) -> None:
        self._tmux("new-session", "-d", "-s", name, "-x", size[0], "-y", size[1], *ARDEA, *verb)

    def resize(self, name: str, size: tuple[int, int]) -> None:
        self._tmux("resize-window", "-t", name, "-x", size[0], "-y", size[1])

    def type(self, name: str, *keys: str) -> None:
        self._tmux("send-keys", "-t", name, *keys)

    def screen(self, name: str) -> list[str]:
        """Its lines."""
        return self._tmux("capture-pane", "-p", "-t", name).splitlines()

    def all(self, name: str) -> list[str]:
        """Also those that have left it upwards."""
        return self._tmux("capture-pane", "-p", "-S", "-", "-t", name).splitlines()

    def ended(self, name: str) -> bool:
        return self._tmux("display-message", "-p", "-t", name, "#{pane_dead}").strip() == "1"

    def close(self) -> None:
        """And waits for all that ran in it, and for tmux itself."""
        pids = [int(pid) for pid in self._tmux("list-panes", "-a", "-F", "#{pid} #{pane_pid}").split()]
        self._tmux("kill-server")
        self._socket.unlink(missing_ok=True)
        eventually(lambda: not any(map(alive, pids)), 20, "tmux and its windows are gone")


@pytest.fixture
def terminals(tmp_path) -> Iterator[Terminals]:
    made = Terminals(tmp_path)
    yield made
    made.close()


def seen(terminals: Terminals, name: str, pattern: str) -> list[str]:
    """The screen, as soon as a line of it has this."""
    found = re.compile(pattern)
    last: list[str] = []

    def look() -> bool:
        last[:] = terminals.screen(name)
        return any(map(found.search, last))

    eventually(look, 60, lambda: f"{pattern} in\n" + "\n".join(last))
    return last


def printed(terminals: Terminals, size: tuple[int, int], *verb: object) -> list[str]:
    """What a verb has printed on a terminal of that size."""
    name = f"{verb[0]}-{size[0]}"
    terminals.open(name, size, *verb)
    eventually(lambda: terminals.ended(name), 60, f"{verb} ends")
    return terminals.all(name)


@pytest.mark.parametrize("name", ["Steady", "Flawed", "Hung", "Wide"])
def test_what_people_see(terminals, state, name):
    """Healthy, failing, stuck, and of two hundred tasks."""
    at = ("--state", state)
    terminals.open("run", SIZES[0], "run", topology(name), "--give-up", 0, *at)
    try:
        for size in SIZES:
            terminals.resize("run", size)
            check_run(terminals, name, size)
            check_top(terminals, name, size, at)
            check_describe(terminals, name, size, at)
            (row,) = [line for line in printed(terminals, size, "list", *at) if line.split()[:1] == [name]]
            assert row.split()[2:4] == ["RUNNING", "DEGRADED" if name == "Hung" and "DEGRADED" in row else "HEALTHY"]
    finally:
        terminals.type("run", "C-c")
        terminals.type("run", "C-c")
        eventually(lambda: terminals.ended("run"), 60, "the run ends")


def check_run(terminals: Terminals, name: str, size: tuple[int, int]) -> None:
    """One line that says how it goes; what matters most survives 80 columns."""
    wanted = r"acked 0 " if name == "Hung" else r"p50 [\d.]+ .?s p99 [\d.]+ .?s · numbers \d+/s · acked [\d,]+"
    whole = r".* · pending [\d,]+ *$" if size[0] == 160 else ""
    seen(terminals, "run", rf"^{name} RUNNING \d+ s .*{wanted}{whole}")
    if name == "Flawed":
        assert any("ValueError: no tens at topologies.py:" in line for line in terminals.all("run"))


def check_top(terminals: Terminals, name: str, size: tuple[int, int], at: tuple[object, ...]) -> None:
    """Who holds spouts back; spouts first, memory at any width, and the line of the keys at the bottom."""
    window = f"top-{size[0]}"
    terminals.open(window, size, "top", name, "--interval", 0.5, *at)
    bolt = {"Steady": "ignore", "Flawed": "flawed", "Hung": "hangs", "Wide": "ignore"}[name]
    wanted = {"Hung": rf"^ *{bolt} .* 100 % ", "Flawed": rf"^ *{bolt} +\S+ +\S+ .*[1-9]"}.get(name, rf"^ *{bolt} ")
    seen(terminals, window, wanted)
    lines = seen(terminals, window, "q quits")  # the last line, which is drawn last
    held = name == "Hung" and lines[0].startswith("hangs-0 pauses numbers for ")
    title = re.compile(rf" *{name}-\w+ RUNNING")
    assert any(map(title.match, lines[1:3] if held else lines[:1])), lines  # what holds them back may take two lines
    (header,) = [line for line in lines if re.match(r" *Task ", line)]
    assert {"Memory", "Failed", "Latency"} <= set(header.split()), header
    if size[0] == 160:
        assert {"p99", "Pending", "Container", "Threads"} <= set(header.split()), header
    rows = [line.split()[0] for line in lines[lines.index(header) + 1 :] if line.split()]
    assert [row for row in rows if row in ("numbers", bolt)] == ["numbers", bolt]
    if name == "Wide":
        first = seen(terminals, window, r"of 202")
        terminals.type(window, "NPage")
        eventually(lambda: terminals.screen(window) != first and "numbers-0" not in "".join(terminals.screen(window)))
    terminals.type(window, "q")
    eventually(lambda: terminals.ended(window), 20, "q ends it")


def check_describe(terminals: Terminals, name: str, size: tuple[int, int], at: tuple[object, ...]) -> None:
    """No row of the table is broken."""
    lines = printed(terminals, size, "describe", name, *at)
    rows = [line for line in lines if re.match(r" *numbers-0 ", line)]
    assert len(rows) == 1, lines
    assert any(re.match(r" *State +RUNNING", line) for line in lines), lines
    assert any(re.match(r" *Health +(HEALTHY|DEGRADED)", line) for line in lines), lines
    if name == "Flawed":
        told = "".join(lines)
        assert "ValueError: no tens at topologies.py:" in told, lines
        assert "tup_id" in told, lines
    if name == "Wide":
        assert len([line for line in lines if re.match(r" *ignore-\d+ ", line)]) == 199
    assert max(map(len, lines)) <= size[0]
