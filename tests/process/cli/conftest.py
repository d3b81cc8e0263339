"""`ardea VERB` as a person calls it, on a state directory of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.machine import patient

ARDEA = [sys.executable, "-P", "-m", "ardea.cli"]


@pytest.fixture
def state(tmp_path) -> Path:
    return tmp_path / "state"


@pytest.fixture
def start(state) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts ``ardea VERB ...``; whatever still runs at the end of the test is killed."""
    started: list[subprocess.Popen[str]] = []

    def starter(*args: object, **options: object) -> subprocess.Popen[str]:
        command = [*ARDEA, *map(str, args), "--state", str(state)]
        environment = {**os.environ, "TERM": "dumb"}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
        process = subprocess.Popen(command, **{**streams, **options})
        started.append(process)
        return process

    yield starter
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def ardea(start) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs ``ardea VERB ...`` to its end."""

    def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        process = start(*args, **options)
        out, err = process.communicate(timeout=patient(150))
        return subprocess.CompletedProcess(args, process.returncode, out, err)

    return run


@pytest.fixture
def daemons(leaks, deadline) -> Iterator[None]:
    """Ends the daemons that a failed test has left, and with them all that they keep."""
    before = leaks.processes()
    yield
    for pid, line in leaks.processes().items():
        if pid not in before and "ardea.scheduler.daemon" in line:
            os.kill(pid, signal.SIGKILL)
    deadline(lambda: not set(leaks.processes()) - set(before), "every process is gone")
