"""The command line with its state in ZooKeeper; local files lie in the user's ``~/.ardea``."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from ardea.errors import ExitCode
from ardea.state import paths
from ardea.state.address import CREDENTIAL
from tests.machine import patient
from tests.process.cli.conftest import ARDEA, ardea, daemons, start
from tests.process.cli.verbs import acked, describe, listed, topology
from tests.process.ports import free_ports

__all__ = ["ardea", "daemons", "start"]

pytestmark = [pytest.mark.zookeeper, pytest.mark.cluster]


@pytest.fixture
def state(server, root, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return server.url(root)


@pytest.fixture
def kept(connect, server):
    """What is left in the state."""
    manager = connect(server, "wc:s3cr3t")
    return lambda: [f"{kind}/{name}" for kind in (*paths.KINDS, paths.NAMES) for name in manager.children(kind)]


def lives_of(told):
    """By container and name."""
    return {(p["container"], p["name"]): p["life"] for p in told["processes"] if p["container"] is not None}


def test_a_topology_lives_and_ends_with_its_state_in_zookeeper(ardea, daemons, kept, deadline, tmp_path, monkeypatch):
    monkeypatch.setenv(CREDENTIAL, "wc:s3cr3t")
    submitted = ardea("submit", "local", topology("Never"), "--containers", 2)
    assert submitted.returncode == ExitCode.OK, submitted.stderr
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    assert listed(ardea) == {"Never": "RUNNING"}
    assert (tmp_path / ".ardea/local" / describe(ardea, "Never")["id"]).is_dir()
    again = ardea("submit", "local", topology("Never"))
    assert again.returncode == ExitCode.CONFLICT, again.stderr
    assert ardea("deactivate", "Never").returncode == ExitCode.OK
    deadline(lambda: listed(ardea) == {"Never": "PAUSED"}, "it is paused")
    assert ardea("activate", "Never").returncode == ExitCode.OK
    assert "--- life 1 started" in ardea("logs", "Never").stdout
    assert "numbers-0" in ardea("top", "Never", "--once", "--interval", 0.5).stdout
    assert len(ardea("debug", "Never", "numbers", "--lines", 2).stdout.splitlines()) == 2
    assert ardea("doctor").returncode == ExitCode.OK
    killed = ardea("kill", "Never", "--wait-secs", 5)
    assert killed.returncode == ExitCode.OK, killed.stderr
    assert kept() == []
    text = "".join(file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file())
    assert "s3cr3t" not in text


@pytest.mark.thorough
def test_an_update_and_a_restart_with_their_state_in_zookeeper(ardea, daemons, kept, deadline):
    """The plan that a restarted master and its containers go by is the updated one."""
    submitted = ardea("submit", "local", topology("Never"), "--containers", 2)
    assert submitted.returncode == ExitCode.OK, submitted.stderr
    updated = ardea("update", "Never", "--component-parallelism", "ignore:3")
    assert updated.returncode == ExitCode.OK, updated.stderr
    before = describe(ardea, "Never")
    assert before["status"]["epoch"] == 2
    restarted = ardea("restart", "Never")
    assert restarted.returncode == ExitCode.OK, restarted.stderr
    after = describe(ardea, "Never")
    former, lives = lives_of(before), lives_of(after)
    assert lives == {process: life + 1 for process, life in former.items()}
    assert {"ignore-0", "ignore-1", "ignore-2"} <= {name for _, name in lives}
    first = acked(ardea, "Never")
    deadline(lambda: acked(ardea, "Never") > first, "data flows on")
    assert ardea("kill", "Never").returncode == ExitCode.OK
    assert kept() == []


def test_a_bounded_topology_leaves_nothing(ardea, kept):
    run = ardea("run", topology("Sum"), "--containers", 2, "-o", "json")
    assert run.returncode == ExitCode.OK, run.stderr
    assert json.loads(run.stdout)["components"]["numbers"]["acked"] == 4000
    assert kept() == []


@pytest.mark.sampled(5)
@pytest.mark.parametrize("verb", [["list"], ["describe", "x"], ["kill", "x"], ["doctor"], ["run", topology("Sum")]])
def test_without_servers_a_verb_says_so(tmp_path, verb):
    address = f"zookeeper://127.0.0.1:{free_ports(1)[0]}/x"
    environment = {**os.environ, "HOME": str(tmp_path), "ARDEA_STATE": address}
    ended = subprocess.run([*ARDEA, *verb], env=environment, capture_output=True, text=True, timeout=patient(60))
    assert ended.returncode == ExitCode.UNREACHABLE, ended.stderr
    assert ended.stderr.startswith("error: cannot ")
    assert f"no ZooKeeper server answers at {address.split('/')[2]}; " in ended.stderr
    assert "hint: " in ended.stderr
    assert "Traceback" not in ended.stderr
