"""Tasks that wait or loop for ever inside ``process``, or abort: they are named, and the tasks beside them go on."""

from __future__ import annotations

import functools
import re
import subprocess
import sys

import pytest

import ardea.scheduler.local_processes
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

REPORT = 2.0
WHERE = {"behaves-0": "in wait_for_ever", "behaves-1": "in loop_for_ever"}


def test_who_is_stuck_in_a_call_is_named_with_its_stack_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(
        ardea.scheduler.local_processes,
        "Policy",
        functools.partial(ardea.scheduler.local_processes.Policy, report=REPORT),
    )
    with Running("stuck.py", tmp_path) as topology:
        topology.running()
        topology.grows("executed", "behaves", 1000)
        assert {p["state"] for p in topology.processes().values()} == {"running"}
        topology.raise_flag("now")
        topology.returned("behaves-2", 1)
        topology.until(
            lambda: {name for name, p in topology.processes().items() if p["state"] == "stuck"} == WHERE.keys(),
            "both are stuck",
        )
        for name, where in WHERE.items():
            topology.until(lambda: where in topology.log(name), f"the log of {name} says where")  # noqa: B023
        for name in ("behaves-2", "behaves-3"):
            topology.grows("executed", name, 20, 40.0)
        told = describe(topology)
        for name in WHERE:
            assert re.search(rf"^{name} since \d+ s: it is in one call of user code", told, re.MULTILINE)
        assert re.search(r"^Health +DEGRADED$", told, re.MULTILINE)
        lives = {name: p["life"] for name, p in topology.processes().items()}
        assert {name for name, life in lives.items() if life > 1} == {"behaves-2"}
        ends = [end for number in (1, 2) for end in topology.ends("behaves-2", number)]
        assert [end.signal for end in ends] == ["SIGABRT"]


def describe(topology):
    """What the verb prints; the topology goes on meanwhile."""
    state = topology.folder.parents[1]
    command = [sys.executable, "-P", "-m", "ardea.cli", "describe", topology.folder.name, "--state", str(state)]
    verb = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        topology.until(lambda: verb.poll() is not None, "the verb has ended")
    finally:
        verb.kill()
        out, _ = verb.communicate()
    return out
