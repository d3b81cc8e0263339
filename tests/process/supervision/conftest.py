from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ardea.supervision import records
from ardea.supervision.spec import Policy, ProcessSpec, dump
from tests.machine import patient
from tests.process.waiting import eventually, heirs

MARK = "SUPERVISED_IN"
"""The folder, in the environment of the supervisor, from which everybody inherits it."""

CHILD = str(Path(__file__).with_name("child.py"))


def child(name: str, *args: str, **options: Any) -> ProcessSpec:
    return ProcessSpec(name, (sys.executable, CHILD, *args), **options)


def _own_standard_input() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Run:
    """A real ``python -m ardea.supervisor``."""

    def __init__(
        self, folder: Path, processes: list[ProcessSpec], policy: Policy, arguments: Sequence[str], terminal: int | None
    ) -> None:
        self.folder = folder
        # Not ARDEA_FOLDER: what is forked shows the environment of the forkserver, which has no such variable.
        self._mark = f"{MARK}={folder}"
        folder.mkdir(exist_ok=True)
        spec = folder / "spec.json"
        spec.write_text(dump(processes, policy))
        command = (sys.executable, "-m", "ardea.supervisor", "--folder", str(folder), "--spec", str(spec))
        command = (*command, *arguments)
        with (folder / "supervisor.log").open("ab") as log:
            self.popen = subprocess.Popen(
                command,
                env={**os.environ, MARK: str(folder)},
                stdin=subprocess.DEVNULL if terminal is None else terminal,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=None if terminal is None else _own_standard_input,
            )

    def process(self, name: str) -> dict[str, Any]:
        status = records.read_status(self.folder)
        if status.get("pid") != self.popen.pid:
            return {"state": None, "pid": None, "life": 0}
        return status["processes"][name]

    def running(self, name: str, life: int = 1) -> int:
        """The pid of ``name`` once it runs its given life."""
        return eventually(
            lambda: self.process(name)["life"] == life and self.process(name)["pid"], what=self.everything
        )

    def serving(self, name: str, life: int = 1) -> int:
        """As ``running``, and it has said so."""
        pid = self.running(name, life)
        eventually(lambda: f"pid {pid} ---\nserving" in self.log(name), what=self.everything)
        return pid

    def log(self, name: str) -> str:
        path = self.folder / "logs" / f"{name}.log"
        return path.read_text() if path.exists() else ""

    def exits(self, name: str) -> list[records.Exit]:
        return records.read_exits(self.folder, name)

    def wait(self, seconds: float = 60.0) -> int:
        return self.popen.wait(patient(seconds))

    def stop(self) -> int:
        self.popen.terminate()
        return self.wait()

    def everything(self) -> str:
        logs = sorted(self.folder.rglob("*.log"))
        return "\n".join(f"[{path.name}]\n{path.read_text()}" for path in logs)

    def is_over(self) -> bool:
        """Whether nobody holds the folder's lock, and nobody is left who descends from a supervisor of it."""
        with (self.folder / "lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return not self.pids()

    def pids(self) -> set[int]:
        """Of the supervisor, and of all that it has started or that was forked: processes, theirs, the forkserver."""
        return heirs(self._mark)


@pytest.fixture
def supervise(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Start supervisors; afterwards nothing of them may be left."""
    runs: list[Run] = []

    def start(
        *processes: ProcessSpec,
        folder: Path = tmp_path / "c",
        arguments: Sequence[str] = (),
        terminal: int | None = None,
        **policy: Any,
    ) -> Run:
        runs.append(Run(folder, list(processes), Policy(**policy), arguments, terminal))
        return runs[-1]

    yield start
    for run in runs:
        if run.popen.poll() is None:
            os.kill(run.popen.pid, signal.SIGKILL)
            run.popen.wait(10)
    for run in runs:
        eventually(run.is_over, what=lambda run=run: f"no orphan; left: {sorted(run.pids())}")
