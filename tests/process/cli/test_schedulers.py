"""Schedulers: the built-in one keeps the contract, and one that somebody else has installed is used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ardea.errors import ArdeaError
from ardea.plan.definition import Definition
from ardea.protocol.wire_pb2 import Ask
from ardea.scheduler.control import answered
from ardea.scheduler.home import Home
from ardea.scheduler.kubernetes import inside
from ardea.scheduler.registry import load
from ardea.state import paths, records
from ardea.state.records import MasterLocation
from ardea.testing.schedulers import check_scheduler
from ardea.transport import holder
from tests.machine import patient
from tests.process.cli.verbs import describe, left_in_state, topology

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("daemons")]
PAGE = Path(__file__).parents[3] / "docs" / "schedulers.md"


def test_local_keeps_the_contract(state, tmp_path):
    check_scheduler(lambda: load("local")(state=str(state)), tmp_path)
    assert left_in_state(state) == []


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The example of the page, as pip would leave it."""
    code, *_ = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (entry,) = re.findall(r'^nice = "(.*)"$', PAGE.read_text(), re.MULTILINE)
    folder = tmp_path / "site-packages"
    info = folder / "ardea_nice-1.dist-info"
    info.mkdir(parents=True)
    (folder / "ardea_nice.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ardea-nice\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[ardea.schedulers]\nnice = {entry}\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.usefixtures("installed")
def test_the_example_of_the_page_is_a_scheduler(ardea, state):
    """For every verb; the last one shows that it went through the example's own class."""
    told = ardea("submit", "nice", topology("Never"), "--niceness", 7, "-o", "json")
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    assert (document["topology"], document["state"], document["reason"]) == ("Never", "RUNNING", "")
    assert Path(document["folder"]).is_relative_to(state)
    known = describe(ardea, "Never")
    pids = [known["kept_by"]["pid"], *(process["pid"] for process in known["processes"])]
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in pids} == {os.getpriority(os.PRIO_PROCESS, 0) + 7}
    nice = ("--scheduler", "nice")
    (listed,) = json.loads(ardea("list", "-o", "json", *nice).stdout)["topologies"]
    assert (listed["name"], listed["running"]) == ("Never", True)
    assert ardea("restart", "Never", "--container", 1, *nice).returncode == 0
    assert ardea("update", "Never", "--component-parallelism", "numbers:2", *nice).returncode == 0
    assert {"numbers-0", "numbers-1"} <= describe(ardea, "Never")["status"]["tasks"].keys()
    assert ardea("kill", "Never", *nice).returncode == 0
    assert left_in_state(state) == []


def test_the_program_of_a_masters_pod_asks_a_real_master(ardea, state):
    """It is as small as a pod with a tenth of a CPU and 256 MiB needs it."""
    assert ardea("submit", "local", topology("Never")).returncode == 0
    home = Home(str(state))
    folder = home.find("Never")
    key = Definition.read(folder / "definition").keys[holder(0)]
    with home.open_state() as manager:
        path = paths.master(folder.name)
        where = records.decode(manager.get(path).data, MasterLocation, path)
    command = [sys.executable, "-P", "-m", inside.__name__, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        assert program.stdout.readline() == inside.READY + b"\n"

        def ask(number: int, address: str, verb: str) -> list[bytes] | None:
            program.stdin.write(inside.question(number, address, key, Ask(verb=verb), 5.0 if number else 0.3))
            program.stdin.flush()
            told, frames = inside.answer(program.stdout.readline())
            assert told == number
            return frames

        acting = f"tcp://{where.host}:{where.port}"
        assert ask(0, f"tcp://{where.host}:1", "status") is None
        status = answered(ask(1, acting, "status") or [], folder.name)
        assert (status.state, sorted(status.tasks)) == ("RUNNING", ["ignore-0", "ignore-1", "numbers-0"])
        with pytest.raises(ArdeaError, match="knows no verb 'dance'"):
            answered(ask(2, acting, "dance") or [], folder.name)
        peak, seconds = used(program.pid)
        assert peak <= 25 << 20, f"{peak:,} bytes"
        assert seconds <= patient(0.3), f"{seconds} CPU seconds"
        program.stdin.close()
        assert program.wait(timeout=10) == 0
    assert ardea("kill", "Never").returncode == 0


def used(pid: int) -> tuple[int, float]:
    """The most that was resident, in bytes; CPU seconds."""
    text = Path(f"/proc/{pid}/status").read_text()
    peak = int(re.findall(r"VmHWM:\s+(\d+) kB", text)[0]) << 10
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return peak, sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")
