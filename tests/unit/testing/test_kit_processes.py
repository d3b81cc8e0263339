"""Whom a name means, and what a signal reaches: real processes that do nothing."""

from __future__ import annotations

import subprocess

import msgspec
import pytest

from ardea.stream_manager.container_setup import Remembered
from ardea.supervision.records import write_status
from ardea.testing.kit import Found, Processes


class Folder:
    """A topology's folder with one container; each process is a ``sleep``."""

    def __init__(self, root):
        self.root = root
        names = ("container-1", "stream-manager", "metrics-manager", "count-0")
        self.popen = {name: subprocess.Popen(["sleep", "60"]) for name in names}
        members = {name: self.status(name) for name in names[1:]}
        members["words-0"] = {"pid": None, "life": 1}  # waits to be started again
        (root / "container-1").mkdir()
        write_status(root, {"processes": {"container-1": self.status("container-1")}})
        write_status(root / "container-1", {"processes": members})

    def status(self, name):
        return {"pid": self.popen[name].pid, "life": 2}

    def stopped(self):
        """The names of those that are stopped."""
        pids = {str(popen.pid): name for name, popen in self.popen.items()}
        ps = subprocess.run(
            ["ps", "-o", "pid=,stat=", "-p", ",".join(pids)], capture_output=True, text=True, check=True
        )
        return {pids[pid] for pid, state in map(str.split, ps.stdout.splitlines()) if state.startswith("T")}


@pytest.fixture
def folder(tmp_path):
    folder = Folder(tmp_path)
    yield folder
    for popen in folder.popen.values():
        popen.kill()
        popen.wait()


def test_names_are_those_of_the_simulated_cluster(folder):
    found = {name: found.pid for name, found in Processes(folder.root).running().items()}
    public = {"container-1": "container-1", "stream-manager": "manager-1", "metrics-manager": "metrics-1"}
    assert found == {public.get(name, name): popen.pid for name, popen in folder.popen.items()}


def test_nobody_runs_before_the_start(tmp_path):
    assert Processes(tmp_path / "none").running() == Processes(tmp_path / "none").resident() == {}


def test_a_kill_meets_one_process_and_says_whom(folder):
    assert Processes(folder.root).kill("count-0") == Found(folder.popen["count-0"].pid, 2)
    assert folder.popen["count-0"].wait(10) == -9
    assert all(popen.poll() is None for name, popen in folder.popen.items() if name != "count-0")
    assert Processes(folder.root).kill("words-0") is None


def test_a_frozen_container_is_all_of_it(folder, deadline):
    processes = Processes(folder.root)
    _, alone = processes.freeze("manager-1")
    deadline(lambda: folder.stopped() == {"stream-manager"}, "one is stopped")
    processes.thaw(alone)
    deadline(lambda: not folder.stopped(), "it goes on")
    _, pids = processes.freeze("container-1")
    deadline(lambda: folder.stopped() == folder.popen.keys(), "all are stopped")
    processes.thaw([*pids, alone[0]])
    deadline(lambda: not folder.stopped(), "all go on")


def test_a_port_is_its_managers_and_any_other_is_the_masters(folder):
    known = Remembered(holder="a", admission=1, data_port=41, control_port=42, plan=b"")
    (folder.root / "container-1" / "manager.plan").write_bytes(msgspec.msgpack.encode(known))
    listener = Processes(folder.root).listener
    assert [listener(port) for port in (41, 42, 43)] == ["manager-1", "manager-1", "master"]


def test_resident_bytes_have_names(folder):
    found = Processes(folder.root).resident()
    assert found.keys() == {"container-1", "manager-1", "metrics-1", "count-0"}
    assert all(bytes_ > 1024 for bytes_ in found.values())
