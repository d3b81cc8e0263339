"""A topology that the former version has submitted, in its own image; the verbs and the chart are of this version."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import pytest

from tests.machine import patient
from tests.process.former import BOTH, ROOT, unpacked
from tests.process.scheduler.kubernetes.releases import needs_cluster, read, run
from tests.process.scheduler.kubernetes.running import ardea, described
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.thorough, pytest.mark.timeout(1200)]

IMAGE = "ardea:former"
WORDS = ROOT / "tests" / "fixtures" / "state-72bfe26" / "words.py"


@pytest.fixture
def former(tmp_path):
    """The former version's tree, whose image the nodes have."""
    if not (load := os.environ.get("ARDEA_KUBE_LOAD")):
        pytest.skip("ARDEA_KUBE_LOAD is unset: no image of the former version can be brought to the cluster")
    source = unpacked(tmp_path)
    run([source / "scripts" / "image.sh", IMAGE], seconds=600)
    run([*shlex.split(load), IMAGE], seconds=300)
    return source


def test_what_the_former_version_runs_is_seen_told_and_ended(former, space):
    arguments = ["submit", "kubernetes", str(WORDS), "--image", IMAGE, "--namespace", space]
    environment = {**os.environ, "PYTHONPATH": str(former)}
    command = [sys.executable, "-P", "-m", "ardea.cli", *arguments]
    submitted = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=patient(300))
    assert submitted.returncode == 0, submitted.stderr

    def runs() -> bool:
        return any(
            p["name"] == "words-0" and p["state"] == "running" for p in described("WordCount", space)["processes"]
        )

    eventually(runs, 60, "its task runs")
    told = described("WordCount", space)
    assert (told["running"], told["status"]) == (True, None)
    assert BOTH in told["other_version"]
    assert BOTH in told["master_silent"]
    assert "plan received" in ardea("logs", "WordCount", "stream-manager", space=space).stdout
    for verb in (["update", "WordCount", "--component-parallelism", "count:2"], ["restart", "WordCount"]):
        refused = ardea(*verb, space=space, code=1)
        assert BOTH in refused.stderr
        assert "nothing was changed" in refused.stderr
    assert BOTH in ardea("deactivate", "WordCount", space=space, code=5).stderr
    ardea("kill", "WordCount", space=space)
    left = read("configmaps,jobs,pods", f"--namespace={space}", "--selector=ardea.dev/topology-id")
    assert left["items"] == []
