"""``kill -9`` of whoever keeps the others alive leaves no process, socket or temporary file of the topology."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ardea.errors import ExitCode
from ardea.supervision.records import read_status
from scheduler.home import Home, is_held
from tests.process.engine.running import TOPOLOGIES, unix_sockets
from tests.process.waiting import alive, eventually

pytestmark = pytest.mark.cluster

PROCESSES = 1 + 3 + 3 * 2 + 5  # supervisors; master or stream manager, and metrics manager; tasks
SOCKETS = 2 * 2 + 3  # of the stream managers for each lane, and of the metrics managers


class Command:
    """``ardea run`` of the survivors' topology, in two containers."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "ardea")
        (root / "out").mkdir()
        self.log = root / "ardea.log"
        command = (sys.executable, "-m", "ardea.cli", "run", str(TOPOLOGIES / "survivors.py"))
        options = ("--state", str(self.home.root), "--set", f"test.out={root / 'out'}")
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen((*command, *options), stdout=log, stderr=log, start_new_session=True)
        self.everybody: list[int] = []
        self._position = root / "out" / "position-0"

    def works(self) -> None:
        """Waits until tuples have been acked; who runs then is ``everybody``."""
        eventually(self._position.exists, 30, self.log.read_text)
        [self.folder] = self.home.folders()
        self.supervisor = int(read_status(self.folder)["pid"])
        self.everybody = [self.supervisor, *self.pids().values()]
        assert len(self.everybody) == PROCESSES
        eventually(
            lambda: len(unix_sockets(self.folder)) == SOCKETS, 30, lambda: f"all listen: {unix_sockets(self.folder)}"
        )

    def pids(self, container: str = "*") -> dict[str, int]:
        """Of the processes of containers, and of their supervisors, as supervisors wrote them down."""
        return {
            f"{folder.name}/{name}": process["pid"]
            for folder in (self.folder, *self.folder.glob(f"container-{container}"))
            for name, process in read_status(folder)["processes"].items()
            if container == "*" or folder != self.folder
        }

    def left(self) -> list[int]:
        return [pid for pid in self.everybody if alive(pid)]

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(10)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path)
    try:
        command.works()
        yield command
    finally:
        command.close()
    eventually(lambda: not command.left(), 15, lambda: f"no orphan; left: {command.left()}")
    # The kernel takes a moment to free the sockets of a process that was killed.
    eventually(lambda: not unix_sockets(command.folder), 5, lambda: f"no socket; left: {unix_sockets(command.folder)}")
    assert not is_held(command.folder)


def test_killing_the_command_ends_everything(command: Command):
    os.kill(command.popen.pid, signal.SIGKILL)
    assert command.popen.wait(10) == -signal.SIGKILL
    eventually(lambda: not command.left(), 15, lambda: f"no orphan; left: {command.left()}")


def test_killing_a_containers_supervisor_ends_the_container_and_killing_the_topologys_everything(command: Command):
    own, others = command.pids("2"), {**command.pids("0"), **command.pids("1")}
    os.kill(command.pids()[f"{command.folder.name}/container-2"], signal.SIGKILL)
    eventually(lambda: not any(map(alive, own.values())), 15, "the container's processes are gone")
    assert all(map(alive, others.values()))
    os.kill(command.supervisor, signal.SIGKILL)
    assert command.popen.wait(20) == ExitCode.FAILED, command.log.read_text()
    assert "supervisor ended: killed by SIGKILL" in " ".join(command.log.read_text().split())
    assert not command.left(), "the command waits until the last process is gone"
