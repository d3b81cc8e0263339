"""What is checked before anything starts: the machine, its ports, the state directory."""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import ClusterError, NotFound, UserError
from ardea.plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from ardea.scheduler import capacity
from ardea.scheduler.capacity import PROCESS_BYTES, Machine, check, check_ports, no_room
from ardea.scheduler.daemon import News
from ardea.scheduler.home import Home, hold, is_held
from ardea.scheduler.local import LocalDeployment
from ardea.state.records import RunState

BOUNDLESS = Machine(None, None, None, None)


def packing(tasks: int, containers: int = 1) -> PackingPlan:
    instances = [InstancePlan(n + 1, "a", n, n, Resource()) for n in range(tasks)]
    plans = (ContainerPlan(c + 1, tuple(instances[c::containers]), Resource()) for c in range(containers))
    return PackingPlan("RoundRobin", tuple(plans))


@pytest.mark.parametrize(
    ("machine", "what"),
    [
        (
            Machine(24 * 10**9, None, None, None),
            "600.4 GB of memory; this machine has 24.0 GB of memory: about 393 tasks",
        ),
        (Machine(None, 4000, None, None), "10,007 processes; this machine has 4,000 processes: about 3,993 tasks fit"),
        (Machine(None, None, 8000, None), "80,056 threads; this machine has 8,000 threads: about 993 tasks fit"),
        (Machine(None, None, None, 1024), "needs about 60,070 open files, and 1,024 are allowed"),
    ],
)
def test_ten_thousand_tasks_are_refused_with_how_many_would_fit(machine, what):
    with pytest.raises(ClusterError) as refusal:
        check(packing(10_000), machine)
    assert what in refusal.value.message
    assert "nothing was started" in refusal.value.message
    assert refusal.value.hint


@given(tasks=st.integers(1, 300), containers=st.integers(1, 8), memory=st.integers(0, 10**11))
def test_what_is_said_to_fit_does_fit(tasks, containers, memory):
    """As many tasks as the refusal names pass, and one more does not."""
    machine = replace(BOUNDLESS, memory=memory)
    beside = 3 * containers + 4
    fit = memory // PROCESS_BYTES - beside
    if tasks <= fit:
        check(packing(tasks, containers), machine)
    else:
        with pytest.raises(ClusterError, match=f"about {max(0, fit):,} tasks fit"):
            check(packing(tasks, containers), machine)


def test_this_machine_runs_a_small_topology():
    check(packing(2), Machine.here())


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "4000000000\n", "memory.current": "3990000000\n"}, 10_000_000),
        (
            {
                "memory.max": "4000000000\n",
                "memory.current": "3990000000\n",
                "memory.stat": "anon 400000000\ninactive_file 3500000000\nactive_file 90000000\n",
            },
            3_510_000_000,
        ),
        ({"memory.max": "4000\n", "memory.current": "100\n", "memory.stat": "inactive_file 4096\n"}, 4000),
        ({"memory.max": "max\n", "memory.current": "100\n", "memory.stat": "inactive_file 50\n"}, None),
    ],
)
def test_a_container_has_the_memory_that_files_hold_and_nobody_uses(tmp_path, monkeypatch, files, left):
    """As `MemAvailable` counts it: the kernel gives it back before it refuses anything."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(capacity, "_CGROUP", tmp_path)
    monkeypatch.setattr(capacity, "_available_memory", lambda: None)
    assert Machine.here().memory == left


def test_a_metrics_port_that_is_taken_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(
            ClusterError, match=rf"container 0 cannot serve /metrics on 127.0.0.1:{port}: another process uses"
        ):
            check_ports(port, 0)
    check_ports(0, 5)


def test_a_metrics_port_that_is_not_this_users_is_not_called_taken(monkeypatch):
    def forbidden(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    probe = SimpleNamespace(setsockopt=lambda *_: None, bind=forbidden, close=lambda: None)
    monkeypatch.setattr(socket, "socket", lambda: closing(probe))
    with pytest.raises(ClusterError, match=r"127.0.0.1:80: Permission denied; nothing was started"):
        check_ports(80, 0)


def test_ports_end():
    with pytest.raises(ClusterError, match="ports end at 65535"):
        check_ports(65536, 0)


def test_a_full_disk_is_named_while_it_is(tmp_path, monkeypatch):
    assert no_room(tmp_path) == no_room(tmp_path / "missing") == ""
    full = SimpleNamespace(f_bavail=3, f_bfree=3, f_frsize=4096, f_blocks=100)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    assert str(tmp_path) in no_room(tmp_path)
    assert "free some space" in no_room(tmp_path)


def test_old_runs_are_pruned_and_running_ones_kept(tmp_path):
    home = Home(tmp_path)
    folders = [home.make_folder(f"a-{n:08x}") for n in range(6)]
    lock = hold(folders[0])
    assert is_held(folders[0])
    assert len(home.prune(keep=2)) == 3
    assert folders[0].is_dir()
    assert len(home.folders()) == 3
    os.close(lock)
    assert not is_held(folders[0])


def test_a_file_beside_the_folders_is_none_of_them(tmp_path):
    """As a file manager leaves: no run ends for it, and it stays."""
    home = Home(tmp_path)
    folder = home.make_folder("a-00000000")
    stray = tmp_path / "local" / ".DS_Store"
    stray.touch()
    (tmp_path / "local" / "nowhere").symlink_to("missing")
    assert home.folders() == [folder]
    assert home.prune(keep=0) == [folder]
    assert stray.is_file()


def test_a_folder_is_held_once(tmp_path):
    folder = Home(tmp_path).make_folder("a-00000000")
    lock = hold(folder)
    with pytest.raises(ClusterError, match="in use"):
        hold(folder)
    os.close(lock)


def test_runs_are_found_by_id_and_by_name(tmp_path):
    home = Home(tmp_path)
    for name in ("a-b-00000001", "a-00000002"):
        home.make_folder(name)
    assert home.find("a-b").name == home.find("a-b-00000001").name == "a-b-00000001"
    assert home.find("a").name == "a-00000002"
    with pytest.raises(NotFound, match="knows a, a-b"):
        home.find("c")


def test_a_state_directory_is_this_users_whatever_the_umask(tmp_path):
    home = Home(tmp_path / "new")
    umask = os.umask(0)
    try:
        folder = home.make_folder("a-00000000")
    finally:
        os.umask(umask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (home.root, folder.parent, folder)] == [0o700] * 3
    assert home.exposed() == []
    folder.parent.chmod(0o777)
    assert home.exposed() == [folder.parent]


@pytest.mark.parametrize(
    "address", ["zookeeper://zk:2181/ardea", "zookeeper+tls://zk:2281/ardea", "ZooKeeper+TLS://zk"]
)
def test_files_of_topologies_lie_here_where_their_state_is_in_a_zookeeper(tmp_path, address):
    home = Home(address, files=tmp_path)
    assert (home.root, home.address, home.state_url) == (tmp_path, address, address)


def test_a_state_directory_may_be_named_by_its_address(tmp_path):
    home = Home(f"file://{tmp_path}/a%20b")
    assert (home.root, home.address) == (tmp_path / "a b", f"{tmp_path}/a b")
    assert home.state_url == f"{tmp_path}/a b/state"


def test_another_users_state_directory_is_refused(tmp_path, monkeypatch):
    if os.geteuid() == 0:
        os.chown(tmp_path, 4242, -1)
    else:
        monkeypatch.setattr("os.geteuid", lambda: 4242)
    owner = tmp_path.stat().st_uid
    with pytest.raises(UserError, match=f"belongs to user {owner}, who could have this one run anything") as refused:
        Home(tmp_path)
    assert "--state" in refused.value.hint
    os.chown(tmp_path, os.geteuid(), -1) if os.getuid() == 0 else monkeypatch.undo()
    Home(tmp_path)


def test_what_is_no_state_directory_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="has no name"):
        Home("")
    with pytest.raises(UserError, match=r"the state directory .*/file is a file"):
        Home(tmp_path / "file")
    with pytest.raises(UserError, match="unknown scheme 'zk' in the state's address zk://host/x"):
        Home("zk://host/x")
    with pytest.raises(UserError, match=r"the state directory .*/caf\\udce9/state has a name that is no UTF-8"):
        Home(tmp_path / "caf\udce9" / "state")
    for unusable in ("x" * 300, "~nobody-of-that-name/x"):
        with pytest.raises(UserError, match="cannot be used: ") as refused:
            Home(unusable)
        assert "--state" in refused.value.hint


@pytest.mark.parametrize("reason", ["", "by hand"])
def test_a_topology_that_is_killed_while_it_is_submitted_was_killed(tmp_path, reason):
    submission = SimpleNamespace(definition=SimpleNamespace(topology="a-00000000"))
    deployment = LocalDeployment(submission, Home(tmp_path), [])
    deployment._launch = SimpleNamespace(news=lambda _: News("over", "KILLED", reason))
    verdict = deployment.wait(None, ended=False, show=lambda *_: None)
    assert (verdict.state, verdict.reason) == (RunState.KILLED, reason or "before it ran")
