"""A topology that the former version, out of git, has submitted and keeps; the verbs are this version's."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from ardea.errors import ExitCode
from tests.process.cli.verbs import acked, describe, left_in_state, listed, topology

ROOT = Path(__file__).parents[3]
FORMER = "72bfe26"
BOTH = "(format 1), and this is Ardea"

pytestmark = [pytest.mark.thorough, pytest.mark.cluster, pytest.mark.usefixtures("daemons")]


@pytest.fixture(scope="module")
def former(tmp_path_factory) -> dict[str, str]:
    """The environment in which ``python -m ardea.cli`` is the former version."""
    source = tmp_path_factory.mktemp("former")
    archived = subprocess.run(["git", "-C", str(ROOT), "archive", FORMER], capture_output=True)
    if archived.returncode != 0:
        pytest.skip(f"commit {FORMER} is not here: {archived.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archived.stdout)) as files:
        files.extractall(source, filter="data")
    return {**os.environ, "PYTHONPATH": str(source), "TERM": "dumb"}


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
