"""Machines of containers: who is started, replaced, left alone; real supervisors of processes that do nothing."""

from __future__ import annotations

import os
import signal

import pytest

from ardea.supervision import records, spec
from ardea.supervision.spec import Policy, ProcessSpec
from ardea.testing.kit import Machines
from ardea.testing.kit.machines import SILENCE
from ardea.transport import ipc_address

SLEEPS = ("sleep", "60")


class Cluster:
    """The machines of a topology with two containers, on a clock that the test moves."""

    def __init__(self, root):
        self.root, self.now = root, 0.0
        self.machines = Machines(root, lambda: self.now)
        self.specified(1)
        self.specified(2)
        self.machines.wanted |= {1, 2}
        self.machines.begin(dict(os.environ))

    def specified(self, container, *processes):
        folder = self.root / f"container-{container}"
        text = spec.dump(processes or [ProcessSpec("count-0", SLEEPS)], Policy(grace=0.1))
        records.replace(folder / "spec.json", text)

    def until(self, condition, deadline, what):
        def met():
            self.machines.step()
            return condition()

        return deadline(met, what)

    def kept(self, machine):
        return records.read_status(machine.folder).get("processes", {})


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.machines.close()


def test_who_is_killed_is_replaced_and_lives_count(cluster, deadline):
    machines, first = cluster.machines, cluster.machines.present[1]
    os.kill(first.pid, signal.SIGKILL)
    cluster.until(lambda: machines.present[1] is not first, deadline, "another has its place")
    assert first.code == -signal.SIGKILL
    assert first.folder != machines.present[1].folder
    assert {name: found.life for name, (found, _) in machines.running().items()} == {"container-1": 2, "container-2": 1}


def test_who_is_silent_is_replaced_and_left_alone(cluster, deadline):
    """Whoever beats is not."""
    machines, (first, second) = cluster.machines, cluster.machines.present.values()
    cluster.until(lambda: cluster.kept(first).get("count-0", {}).get("pid"), deadline, "it keeps its process")
    os.kill(first.pid, signal.SIGSTOP)
    machines.step()
    cluster.now = SILENCE
    second.heard = cluster.now
    machines.step()
    assert machines.former == [first]
    assert machines.present[2] is second
    os.kill(cluster.kept(first)["count-0"]["pid"], 0)
    os.kill(first.pid, signal.SIGCONT)
    machines.step()
    assert first.code is None


def test_a_removed_container_ends_and_a_changed_one_follows(cluster, deadline):
    machines, (first, second) = cluster.machines, cluster.machines.present.values()
    cluster.until(lambda: "count-0" in cluster.kept(second), deadline, "it has begun")
    cluster.specified(2, ProcessSpec("count-0", SLEEPS), ProcessSpec("count-1", SLEEPS))
    cluster.until(lambda: "count-1" in cluster.kept(second), deadline, "the second follows")
    machines.wanted.discard(1)
    cluster.until(lambda: first.code is not None, deadline, "the first has ended")
    assert machines.present == {2: second}
    assert not machines.over


def test_each_has_folder_and_sockets_of_its_own(cluster):
    former = cluster.root / "container-1"
    address = ipc_address(former, "x-1-data")
    argv = ("sh", "-c", "sleep 60", "--data", address, "--folder", str(former), "--keys", str(former / "keys"))
    cluster.specified(1, ProcessSpec("manager", argv))
    machine = cluster.machines.present[1]
    machine.follow()
    [moved] = spec.load(machine.folder / "spec.json")[0]
    assert moved.argv[-1] == argv[-1]
    assert moved.argv[6] == str(machine.folder)
    assert moved.argv[4] == ipc_address(machine.folder, "x-1-data-1")
