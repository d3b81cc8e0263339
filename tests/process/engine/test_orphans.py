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
from ardea.scheduler.home import Home, is_held
from ardea.supervision.records import read_status
from tests.process.engine.running import TOPOLOGIES, unix_sockets
from tests.process.waiting import alive, eventually, heirs

pytestmark = pytest.mark.cluster

# Supervisors; master or stream manager, and metrics manager; tasks.  A container that had to wait long for its
# forkserver goes on without one, so that these are not counted.
PROCESSES = 1 + 3 + 3 * 2 + 5
SOCKETS = 2 * 2 + 3  # of the stream managers for each lane, and of the metrics managers
MARK = "LOOKED_FOR_BY"  # in the command's environment; everybody inherits it


def commandline(pid: int) -> bytes:
    """As the kernel shows it; nothing once the process is gone."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


class Command:
    """``ardea run`` of the survivors' topology, in two containers."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "ardea")
        (root / "out").mkdir()
        self.log = root / "ardea.log"
        self._mark = f"{MARK}={root}"
        command = (sys.executable, "-m", "ardea.cli", "run", str(TOPOLOGIES / "survivors.py"))
        options = ("--state", str(self.home.root), "--set", f"test.out={root / 'out'}")
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                (*command, *options),
                env={**os.environ, MARK: str(root)},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._position = root / "out" / "position-0"

    def works(self) -> None:
        """Waits until tuples have been acked, and all processes and sockets are there."""
        eventually(self._position.exists, 60, self.log.read_text)
        [self.folder] = self.home.folders()
        self.supervisor = int(read_status(self.folder)["pid"])
        eventually(self.is_complete, 120, self._run)
        assert self.everybody() >= {self.supervisor, *self.pids().values()}
        eventually(
            lambda: len(unix_sockets(self.folder)) == SOCKETS, 120, lambda: f"all listen: {unix_sockets(self.folder)}"
        )

    def is_complete(self) -> bool:
        """Whether all processes run, and no more of them."""
        return sum(b"ardea.forkserver" not in commandline(pid) for pid in self.everybody()) == PROCESSES

    def _run(self) -> str:
        commands = {pid: commandline(pid)[-80:] for pid in sorted(self.everybody())}
        return f"all run: {commands}; {self.pids()}; {self.log.read_text()}"

    def everybody(self) -> set[int]:
        """All that descend from the command and run: supervisors, what they have started or replaced, forkservers."""
        return heirs(self._mark) - {self.popen.pid}

    def pids(self, container: str = "*") -> dict[str, int]:
        """Of the processes of containers, and of their supervisors, as supervisors wrote them down."""
        return {
            f"{folder.name}/{name}": process["pid"]
            for folder in (self.folder, *self.folder.glob(f"container-{container}"))
            for name, process in read_status(folder)["processes"].items()
            if container == "*" or folder != self.folder
        }

    def close(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()
        self.popen.wait(60)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    command = Command(tmp_path)
    try:
        command.works()
        yield command
    finally:
        command.close()
    eventually(lambda: not command.everybody(), 60, lambda: f"no orphan; left: {sorted(command.everybody())}")
    # The kernel takes a moment to free the sockets of a process that was killed.
    eventually(lambda: not unix_sockets(command.folder), 30, lambda: f"no socket; left: {unix_sockets(command.folder)}")
    assert not is_held(command.folder)


def test_killing_the_command_ends_everything(command: Command):
    os.kill(command.popen.pid, signal.SIGKILL)
    assert command.popen.wait(60) == -signal.SIGKILL
    eventually(lambda: not command.everybody(), 60, lambda: f"no orphan; left: {sorted(command.everybody())}")


@pytest.mark.parametrize("container", ["2", "0"], ids=["of-tasks", "the-masters"])
def test_killing_a_containers_supervisor_ends_the_container_and_killing_the_topologys_everything(
    command: Command, container: str
):
    name = f"{command.folder.name}/container-{container}"
    killed, own = command.pids()[name], set(command.pids(container).values())
    others = set().union(*(command.pids(other).values() for other in {"0", "1", "2"} - {container}))
    before = command.everybody()
    os.kill(killed, signal.SIGKILL)
    eventually(lambda: not any(map(alive, own)), 60, "the container's processes are gone")
    assert all(map(alive, others))

    def replaced() -> bool:
        running = set(command.pids().values())
        return None not in running and not running & {killed, *own} and command.is_complete()

    eventually(replaced, 60, lambda: f"it is replaced; new: {sorted(command.everybody() - before)}")
    assert others <= command.everybody()
    os.kill(command.supervisor, signal.SIGKILL)
    assert command.popen.wait(60) == ExitCode.FAILED, command.log.read_text()
    assert "supervisor ended: killed by SIGKILL" in " ".join(command.log.read_text().split())
    assert not command.everybody(), "the command waits until the last process is gone"
