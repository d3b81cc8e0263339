"""A signal that does not come from the supervisor, in a topology that runs."""

from __future__ import annotations

import os
import signal

import pytest

from tests.process.faults.counted import Counted

pytestmark = pytest.mark.cluster


def test_whoever_a_stranger_tells_to_end_is_started_again(tmp_path):
    with Counted(tmp_path) as run:
        processes = run.topology.processes
        before = processes.running()
        told = ("numbers-0", "second-1", "metrics-1", "manager-2", "master")
        for name in told:
            os.kill(before[name].pid, signal.SIGTERM)
        run.topology.until(
            lambda: all((p := processes.running().get(name)) and p.life == before[name].life + 1 for name in told),
            "all have their next life",
        )
        run.works()
        after = processes.running()
        assert {name for name in before if before[name] != after[name]} == set(told)
        run.finish()
