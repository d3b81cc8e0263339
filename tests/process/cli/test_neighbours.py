"""What is wrong with a topology, or with its master, is nobody else's trouble."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from ardea.scheduler.processes import processes
from ardea.supervision import records, spec
from tests.process.cli.verbs import acked, describe, healths, left_in_state, listed, topology

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.alone, pytest.mark.usefixtures("daemons")]

RATE = 100.0
"""Of the spout, alone and among others: it makes up for what it was late."""
SECONDS = 20.0
"""The number is told once a second, to a command that takes as long on a busy machine."""


@pytest.fixture
def submit(ardea):
    def submitted(name: str, *options: object) -> dict:
        told = ardea("submit", "local", topology(name), "-o", "json", *options)
        assert told.returncode == 0, told.stderr
        return json.loads(told.stdout)

    return submitted


def rate(ardea, name: str, deadline) -> float:
    """Acked a second, from one change of the number that is told to another."""

    def changed(since: float = 0.0) -> tuple[int, float]:
        deadline(lambda: time.monotonic() > since, "time has passed", seconds=2 * SECONDS)
        before = acked(ardea, name)
        more = deadline(lambda: max(0, acked(ardea, name) - before), "more are acked")
        return before + more, time.monotonic()

    first, began = changed()
    last, ended = changed(began + SECONDS)
    return (last - first) / (ended - began)


def pids(folder: Path) -> dict[str, int]:
    return {process.name: process.pid for process in processes(folder, time.time()) if process.pid}


def test_sick_neighbours_change_neither_rate_nor_recovery(submit, ardea, start, state, deadline):
    """In one state root: one that dies again and again, one that acks nothing, one whose submitter was killed."""
    folder = state / "local" / submit("Steady")["id"]
    deadline(lambda: acked(ardea, "Steady"), "tuples are acked")
    submit("BadRow")
    submit("Stuck")
    half = start("submit", "local", topology("Chatty"))
    deadline(lambda: list(state.glob("local/Chatty-*")), "it has begun")
    half.kill()
    deadline(lambda: healths(ardea)["BadRow"] == "CRASHING", "it is called so")
    assert rate(ardea, "Steady", deadline) > 0.9 * RATE

    os.kill(pids(folder)["ignore-0"], signal.SIGKILL)
    killed, first = time.monotonic(), acked(ardea, "Steady")
    deadline(lambda: acked(ardea, "Steady") > first + RATE, "tuples are acked again")
    print(f"acked again, a second's worth more, {time.monotonic() - killed:.1f} s after the kill")
    assert {p["name"]: p["life"] for p in describe(ardea, "Steady")["processes"] if p["life"] > 1} == {"ignore-0": 2}
    for name in listed(ardea):
        assert ardea("kill", name, "--wait-secs", 1).returncode == 0
    assert left_in_state(state) == []


def test_with_its_master_gone_a_topology_works_and_can_be_killed_and_others_submitted(submit, ardea, state, deadline):
    """The master is taken out of what its supervisor runs, so that no other one comes."""
    folder = state / "local" / submit("Never", "--containers", 2)["id"]
    deadline(lambda: acked(ardea, "Never"), "tuples are acked")
    path = folder / "container-0" / "spec.json"
    specs, policy = spec.load(path)
    records.replace(path, spec.dump([each for each in specs if each.name != "topology-master"], policy))
    deadline(lambda: "topology-master" not in pids(folder), "there is no master")
    silent = describe(ardea, "Never")
    assert silent["master_silent"]
    assert silent["health"]["state"] == "UNREACHABLE"
    assert healths(ardea) == {"Never": "UNREACHABLE"}

    submit("Steady")
    deadline(lambda: acked(ardea, "Steady"), "another topology's tuples are acked")
    assert ardea("kill", "Steady", "--wait-secs", 1).returncode == 0
    victim = pids(folder)["numbers-0"]
    os.kill(victim, signal.SIGKILL)
    deadline(lambda: pids(folder).get("numbers-0", victim) != victim, "a task is back without a master")
    assert listed(ardea) == {"Never": "RUNNING"}
    killed = ardea("kill", "Never", "--wait-secs", 1)
    assert killed.returncode == 0, killed.stderr
    assert left_in_state(state) == []
