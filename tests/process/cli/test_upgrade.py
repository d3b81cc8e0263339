"""A topology that the former version, out of git, has submitted and keeps; the verbs are this version's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

from ardea.errors import ExitCode
from ardea.versions import FORMAT
from tests.process.cli.verbs import acked, describe, left_in_state, listed, topology
from tests.process.former import BOTH, ROOT, unpacked

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.usefixtures("daemons")]


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> dict[str, str]:
    """The environment in which ``python -m ardea.cli`` is the former version."""
    return {**os.environ, "PYTHONPATH": str(unpacked(tmp_path_factory.mktemp("former"))), "TERM": "dumb"}


@pytest.fixture
def submitted(former, ardea) -> str:
    """The id of a topology of the former version that runs."""
    told = ardea("submit", "local", topology("Never"), "--containers", 2, "-o", "json", env=former)
    assert told.returncode == ExitCode.OK, told.stderr
    return json.loads(told.stdout)["id"]


def test_what_the_former_version_keeps_is_seen_told_and_ended(ardea, submitted, state, deadline):
    deadline(lambda: acked(ardea, "Never") > 0, "tuples are acked, as its master says")
    told = describe(ardea, "Never")
    assert (told["running"], told["state"]) == (True, "RUNNING")
    assert BOTH in told["other_version"]
    assert told["status"]["tasks"]["numbers-0"]["state"] == "ACTIVE"
    assert BOTH in ardea("describe", "Never").stdout
    assert listed(ardea) == {"Never": "RUNNING"}
    assert "plan received" in ardea("logs", "Never", "stream-manager").stdout
    for verb in (["update", "Never", "--component-parallelism", "ignore:3"], ["restart", "Never"]):
        refused = ardea(*verb)
        assert refused.returncode == ExitCode.FAILED
        assert BOTH in refused.stderr
        assert "nothing was changed" in refused.stderr
    assert ardea("deactivate", "Never").returncode == ExitCode.OK
    deadline(lambda: listed(ardea) == {"Never": "PAUSED"}, "it is paused")
    assert ardea("activate", "Never").returncode == ExitCode.OK
    assert {p["life"] for p in describe(ardea, "Never")["processes"]} == {1}
    killed = ardea("kill", "Never")
    assert killed.returncode == ExitCode.OK, killed.stderr
    assert f"{submitted} is gone" in killed.stderr
    assert "SIGTERM" not in killed.stderr
    assert left_in_state(state) == []


@pytest.fixture
def replaceable(tmp_path) -> Path:
    """A copy of this version, which runs where it is first in PYTHONPATH."""
    left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", "tests", "docs", "benchmarks", "__pycache__")
    return Path(shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out, symlinks=True))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere tasks are not forked from what was loaded")
def test_a_topology_whose_files_are_replaced_under_it_ends_and_says_why(ardea, replaceable, deadline):
    """As soon as it needs a new process, even a task: it is not forked from what has the former files loaded."""
    environment = {**os.environ, "PYTHONPATH": str(replaceable)}
    assert ardea("submit", "local", topology("Never"), env=environment).returncode == ExitCode.OK
    file = replaceable / "ardea" / "versions.py"
    file.write_text(file.read_text().replace(f"\nFORMAT = {FORMAT}\n", f"\nFORMAT = {FORMAT + 1}\n"))
    told = describe(ardea, "Never")
    (task,) = (process for process in told["processes"] if process["name"] == "ignore-0")
    os.kill(task["pid"], signal.SIGKILL)
    deadline(lambda: listed(ardea) == {"Never": "FAILED"}, "it has failed")
    reason = describe(ardea, "Never")["reason"]
    assert f"(format {FORMAT}), and this is Ardea" in reason
    assert f"(format {FORMAT + 1})" in reason
    assert "ignore-0 cannot go on" in reason
