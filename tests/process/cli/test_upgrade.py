"""A topology that the former version, out of git, has submitted and keeps; the verbs are this version's."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

from ardea.errors import ExitCode
from ardea.versions import FORMAT, PROTOCOL
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
    left_out = shutil.ignore_patterns(
        ".git", ".venv", ".*_cache", ".hypothesis", "build", "dist", "tests", "docs", "benchmarks", "__pycache__"
    )
    return Path(shutil.copytree(ROOT, tmp_path / "copy", ignore=left_out, symlinks=True))


@pytest.fixture
def replaced(ardea, replaceable, deadline):
    """A topology runs from these files; then one number in them rises, and one process dies.  Why the topology ends."""

    def reason(number: str, process: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(replaceable)}
        assert ardea("submit", "local", topology("Never"), env=environment).returncode == ExitCode.OK
        file = replaceable / "ardea" / "versions.py"
        text, raised = re.subn(rf"(?m)^{number} = \d+$", f"{number} = 99", file.read_text())
        assert raised == 1
        file.write_text(text)
        where = (0 if process == "topology-master" else 1, process)
        (pid,) = (p["pid"] for p in describe(ardea, "Never")["processes"] if (p["container"], p["name"]) == where)
        os.kill(pid, signal.SIGKILL)
        deadline(lambda: listed(ardea) == {"Never": "FAILED"}, "it has failed", seconds=40.0)
        return describe(ardea, "Never")["reason"]

    return reason


@pytest.mark.parametrize("process", ["ignore-0", "topology-master"])
def test_a_topology_whose_files_are_replaced_by_another_formats_ends_and_says_why(replaced, process):
    """As soon as it needs a new process, even a task: it is not forked from what has the former files loaded."""
    reason = replaced("FORMAT", process)
    assert f"{process} cannot go on" in reason
    assert f"(format {FORMAT}), and this is Ardea" in reason
    assert "(format 99)" in reason


@pytest.mark.parametrize("process", ["ignore-0", "stream-manager", "metrics-manager", "topology-master"])
def test_a_process_of_another_protocol_ends_the_topology_which_names_both(replaced, process):
    """Whichever end of the link notices it first."""
    reason = replaced("PROTOCOL", process)
    assert "OTHER_VERSION" in reason
    assert f"speaks protocol {PROTOCOL}" in reason
    assert "speaks protocol 99" in reason
