"""What a dry run prints is what kubectl makes a topology of, and what it takes away again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import yaml

from tests.machine import patient
from tests.process.scheduler.kubernetes.releases import kubectl, namespace, needs_cluster, objects, read, run
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, chart_defaults, described, pods
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.timeout(600)]
QUIET = TOPOLOGIES / "quiet.py"
COLLECTED_WITHIN = 20.0
"""Seconds in which Kubernetes removes what has an owner that there is not, with room to spare."""


@pytest.fixture
def dry_run(tmp_path):
    """What it prints, in a file; nobody tells it of the cluster."""

    def printed(*options):
        environment = {**os.environ, "HOME": str(tmp_path), "ARDEA_STATE": str(tmp_path / "ardea")}
        del environment["KUBECONFIG"]
        command = [sys.executable, "-m", "ardea.cli", "submit", "kubernetes", *map(str, options), "--dry-run"]
        ended = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=patient(60)
        )
        assert ended.returncode == 0, ended.stderr
        file = tmp_path / "manifests.yaml"
        file.write_text(ended.stdout)
        return file

    return printed


def test_the_api_server_takes_every_object_also_of_a_large_topology(dry_run, tmp_path):
    author = tmp_path / "author"
    author.mkdir()
    (author / "quiet.py").write_text(QUIET.read_text())
    (author / "scheduler.py").write_text((TOPOLOGIES / "scheduler.py").read_text())
    (author / "noise.bin").write_bytes(os.urandom(880 << 10))
    with namespace() as space:
        file = dry_run(author / "quiet.py", "-n", space, "--include", "*.bin", "--include-secrets")
        checks = ["--dry-run=server", "--validate=strict", "--server-side"]
        ended = run(["kubectl", "apply", "-f", str(file), *checks])
        assert "Warning" not in ended.stderr, "Pod Security or a deprecation"
        manifests = list(yaml.safe_load_all(file.read_text()))
        assert len(ended.stdout.splitlines()) == len(manifests)
        (code,) = (each for each in manifests if "bundle" in each.get("binaryData", {}))
        kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(code))


@pytest.mark.thorough
def test_a_file_is_applied_deleted_and_applied_again(space, servers, dry_run, tmp_path):
    before = objects(space)
    file = dry_run(QUIET, "-n", space, "--defaults", chart_defaults(space, tmp_path))
    command = file.read_text().splitlines()[-1].removeprefix("# ")
    secrets = command.split()[-1]

    def apply():
        run(["sh", "-c", command])
        kubectl("apply", "--server-side", "-f", str(file))

    apply()
    eventually(runs(space), 120, lambda: f"it runs: {kubectl('get', 'pods', f'--namespace={space}')}")
    topology, made = described("Quiet", space)["id"], uids(space)
    eventually(lambda: age(space) > COLLECTED_WITHIN, 30, "Kubernetes would have removed it")
    assert uids(space) == made
    apply()
    assert uids(space) == made
    assert [pod["metadata"]["uid"] for pod in pods(space) if pod["status"]["phase"] != "Running"] == []

    kubectl("delete", "-f", str(file), "-f", secrets)
    apply()
    eventually(runs(space), 120, lambda: f"it runs: {kubectl('get', 'pods', f'--namespace={space}')}")
    assert described("Quiet", space)["id"] == topology
    assert not uids(space).items() & made.items()

    kubectl("delete", "-f", str(file), "-f", secrets)
    eventually(lambda: objects(space) == before, 90, lambda: f"nothing is left: {objects(space) - before}")
    eventually(lambda: topology not in known(servers, space), 60, lambda: f"forgotten: {known(servers, space)}")

    apply()
    eventually(runs(space), 120, lambda: f"it runs: {kubectl('get', 'pods', f'--namespace={space}')}")
    ardea("kill", "Quiet", "--wait-secs", "0", space=space)
    assert objects(space) - before == {"secret/quiet-state"}
    assert topology not in known(servers, space)


@pytest.mark.thorough
def test_what_has_lost_its_root_ends_by_itself(space, servers, dry_run, tmp_path):
    file = dry_run(QUIET, "-n", space, "--defaults", chart_defaults(space, tmp_path), "--include-secrets")
    before = objects(space)
    kubectl("apply", "--server-side", "-f", str(file))
    eventually(runs(space), 120, lambda: f"it runs: {kubectl('get', 'pods', f'--namespace={space}')}")
    topology = described("Quiet", space)["id"]
    kubectl("delete", "configmap", "quiet", f"--namespace={space}")
    eventually(lambda: not pods(space), 90, lambda: f"no pod is left: {pods(space)}")
    assert topology not in known(servers, space)
    kubectl("delete", "-f", str(file), "--ignore-not-found")
    eventually(lambda: objects(space) == before, 60, lambda: f"nothing is left: {objects(space) - before}")


def runs(space):
    """Whether every task has reported."""

    def complete():
        found = read("configmap", f"--namespace={space}", "--selector=ardea.dev/role=topology")["items"]
        annotations = [root["metadata"].get("annotations", {}) for root in found]
        return [json.loads(a.get("ardea.dev/status", "{}")).get("came_up") for a in annotations] == [True]

    return complete


def uids(space):
    """Of the objects that the file has made."""
    selector = "--selector=app.kubernetes.io/instance=Quiet"
    found = read("configmaps,secrets,jobs", f"--namespace={space}", selector)["items"]
    return {(each["kind"], each["metadata"]["name"]): each["metadata"]["uid"] for each in found}


def age(space):
    """Seconds since the root was made."""
    root = read("configmap", "quiet", f"--namespace={space}")
    return (datetime.now(UTC) - datetime.fromisoformat(root["metadata"]["creationTimestamp"])).total_seconds()


def known(servers, space):
    """What ZooKeeper has of this namespace's topologies."""
    pod, home = servers.split(".")[:2]
    asks = ("zkCli.sh", "-server", "localhost:2181", "ls", f"/{space}")
    return kubectl("exec", f"{pod}-0", f"--namespace={home}", "--", *asks)
