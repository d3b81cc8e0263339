"""A topology that runs, and a console that shows it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.machine import patient
from tests.process.waiting import eventually

ARDEA = [sys.executable, "-P", "-m", "ardea.cli"]
TOPOLOGIES = Path(__file__).with_name("topologies.py")


class Console:
    """``ardea ui`` of one state directory; ``link`` is what it prints."""

    def __init__(self, state: Path, port: int = 0, *options: str) -> None:
        self.state, self._options = state, options
        self._start(port)

    def start_again(self) -> None:
        """At the same port."""
        self._start(int(self.link.partition("#")[0].rstrip("/").rpartition(":")[2]))

    def _start(self, port: int) -> None:
        command = [*ARDEA, "ui", "--no-browser", "--port", str(port), "--state", str(self.state), *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        self.link = self._process.stdout.readline().strip()

    def kill(self) -> None:
        """As when the machine has no memory left."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._process.communicate()


def call(state: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """``ardea VERB ...`` to its end."""
    command = [*ARDEA, *map(str, arguments), "--state", str(state)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=patient(150), env={**os.environ, "TERM": "dumb"}
    )


def complete(state: Path, name: str) -> bool:
    """Whether every process of the topology has reported: none is started any more."""
    told = call(state, "describe", name, "-o", "json")
    status = json.loads(told.stdout)["status"] if told.returncode == 0 else None
    return status is not None and not status["missing_containers"] and not status["silent_tasks"]


@pytest.fixture(scope="module")
def console(leaks, tmp_path_factory) -> Iterator[Console]:
    """Shows the topology ``Watched``, which runs."""
    state = tmp_path_factory.mktemp("console")
    submitted = call(state, "submit", "local", f"{TOPOLOGIES}:Watched")
    shown = None
    try:
        assert "is submitted" in submitted.stderr, submitted.stderr  # on a busy machine it runs later
        eventually(lambda: complete(state, "Watched"), 60, "every process has reported")
        shown = Console(state)
        yield shown
    finally:
        if shown is not None:
            shown.stop()
        call(state, "kill", "Watched", "--wait-secs", 0)
