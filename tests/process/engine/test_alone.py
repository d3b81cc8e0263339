"""A stream manager that has no plan yet: no master runs."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from ardea.scheduler.home import Home
from ardea.scheduler.local_processes import LocalProcesses
from ardea.scheduler.submission import Submission
from tests.process.engine.running import TOPOLOGIES
from tests.process.waiting import eventually

TICK = os.sysconf("SC_CLK_TCK")
BUSY = 0.2
"""Of a core: a loop that does not wait takes all of one."""


def cpu(pid: int) -> float:
    """Seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to read CPU times from")
def test_it_waits_and_does_not_spin(tmp_path):
    home = Home(str(tmp_path / "state"))
    submission = Submission.of(str(TOPOLOGIES / "wire.py:Pair"), {"test.out": str(tmp_path)}, home.state_url)
    LocalProcesses(submission.definition, tmp_path / "run").prepare()
    spec = json.loads((tmp_path / "run" / "container-1" / "spec.json").read_text())
    argv = next(process["argv"] for process in spec["processes"] if process["name"] == "stream-manager")
    manager = subprocess.Popen(argv)
    try:
        seen = [(time.monotonic(), cpu(manager.pid))]

        def waits():
            """After its imports, for a second."""
            assert manager.poll() is None
            now, used = time.monotonic(), cpu(manager.pid)
            if now - seen[-1][0] < 1.0:
                return False
            (before, former), seen[-1] = seen[-1], (now, used)
            return (used - former) / (now - before) < BUSY

        eventually(waits, 60, "it uses less than a fifth of a core")
    finally:
        manager.kill()
        manager.wait()
