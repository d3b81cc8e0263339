"""The chart's life on a real cluster: install, upgrade, loss of a server, uninstall."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.machine import patient
from tests.process.helm.monitoring import rules
from tests.process.scheduler.kubernetes.releases import (
    CHART,
    RELEASE,
    CommandError,
    evict,
    helm,
    install,
    kubectl,
    namespace,
    needs_cluster,
    objects,
    read,
    run,
)
from tests.process.scheduler.kubernetes.running import SMALL, TOPOLOGIES, ardea, described
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.timeout(900)]

SERVER = "ardea-zookeeper"
TEST = f"{RELEASE}-test"
METERED = os.environ.get("ARDEA_ZOOKEEPER_IMAGE")


def zookeeper(space: str, server: int, *command: str) -> str:
    """What zkCli.sh says to a command, asked in that server's pod."""
    pod = f"{SERVER}-{server}"
    return kubectl("exec", pod, f"--namespace={space}", "--", "zkCli.sh", "-server", "localhost:2181", *command)


def uninstall(space: str) -> None:
    helm("uninstall", RELEASE, f"--namespace={space}", "--wait", "--timeout=150s")


def ready(space: str) -> int:
    return read("statefulset", SERVER, f"--namespace={space}")["status"].get("readyReplicas", 0)


def up(space: str) -> list[str]:
    """The servers that are ready and not about to go; the set's own count lags behind."""
    pods = read("pods", f"--namespace={space}")["items"]
    return [pod["metadata"]["name"] for pod in pods if is_ready(pod) and "deletionTimestamp" not in pod["metadata"]]


def is_ready(pod: dict[str, Any]) -> bool:
    return any((c["type"], c["status"]) == ("Ready", "True") for c in pod["status"].get("conditions", ()))


def test_install_upgrade_and_uninstall_leave_nothing_behind():
    with namespace() as space:
        install(space, "zookeeper.persistence.enabled=true", "uninstall.force=true")
        assert ready(space) == 1, "helm install --wait returned before ZooKeeper was ready"
        pods = read("pods", f"--namespace={space}")["items"]
        assert [pod["metadata"]["name"] for pod in pods] == [f"{SERVER}-0"], "nothing else runs before a submit"
        zookeeper(space, 0, "create", "/kept", "by-the-claim")
        first = read("pod", f"{SERVER}-0", f"--namespace={space}")["metadata"]["uid"]

        changes = ["--set=zookeeper.extraConfig.globalOutstandingLimit=2000", "--set=topology.masterReplicas=1"]
        helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", "--wait", *changes)

        assert read("pod", f"{SERVER}-0", f"--namespace={space}")["metadata"]["uid"] != first
        assert "by-the-claim" in zookeeper(space, 0, "get", "/kept")
        defaults = read("configmap", "--selector=ardea.dev/role=defaults", f"--namespace={space}")["items"]
        assert [json.loads(d["data"]["defaults.json"])["masterReplicas"] for d in defaults] == [1]

        with pytest.raises(CommandError, match=f"the namespace {space} has the release {RELEASE} already"):
            helm("install", "second", CHART, f"--namespace={space}")
        with pytest.raises(CommandError, match="an upgrade cannot change it"):
            helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", "--set=zookeeper.servers=3")
        assert ready(space) == 1

        uninstall(space)
        # Pods and claims follow what owned them.
        eventually(lambda: not objects(space), 60, lambda: f"nothing remains of {objects(space)}")


@pytest.mark.thorough
def test_three_servers_outlive_any_one_and_no_drain_takes_two():
    with namespace() as space:
        install(space, "zookeeper.servers=3")
        assert ready(space) == 3
        zookeeper(space, 0, "create", "/written", "on-one")
        evict(space, f"{SERVER}-2")
        with pytest.raises(CommandError, match="disruption budget"):
            evict(space, f"{SERVER}-1")
        eventually(lambda: "on-one" in read_from(space, 1), 60, "two servers answer: the evicted one may have led")
        eventually(lambda: len(up(space)) == 3, 120, "the third server is back")
        assert "on-one" in zookeeper(space, 2, "get", "/written"), "it has what was written while it was away"


def read_from(space: str, server: int) -> str:
    """What it has of /written, or what it says while the servers elect."""
    try:
        return zookeeper(space, server, "get", "/written")
    except CommandError as error:
        return str(error)


def rights(space: str) -> list[str]:
    """What gives the test's account any."""
    bindings = read("rolebindings", f"--namespace={space}")["items"]
    return [b["metadata"]["name"] for b in bindings if TEST in {s["name"] for s in b.get("subjects", ())}]


@pytest.mark.thorough
@pytest.mark.skipif(
    METERED is None,
    reason="ARDEA_ZOOKEEPER_IMAGE is unset: no image with ZooKeeper's Prometheus provider is known (REPOSITORY:TAG)",
)
def test_zookeeper_serves_metrics_as_long_as_it_takes_part():
    repository, _, tag = str(METERED).rpartition(":")
    with namespace() as space:
        image = (f"zookeeper.image.repository={repository}", f"zookeeper.image.tag={tag}")
        install(space, "zookeeper.metrics.enabled=true", *image)
        (pod,) = read("pods", f"--namespace={space}")["items"]
        (port,) = (p["containerPort"] for p in pod["spec"]["containers"][0]["ports"] if p["name"] == "metrics")
        text = kubectl("get", "--raw", f"/api/v1/namespaces/{space}/pods/{SERVER}-0:{port}/proxy/metrics")
        served = {line.partition("{")[0].partition(" ")[0] for line in text.splitlines()}
        asked = set(re.findall(r"\b([a-z_]+)\{namespace=\"here\", role=\"zookeeper\"\}", rules("here", "zookeeper")))
        assert asked - {"up"} <= served


@pytest.mark.thorough
@pytest.mark.parametrize("program", ["helm", "helm3"])
def test_helm_test_submits_a_topology_and_goes_with_the_release(space, program):
    before = objects(space)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if (command := shutil.which(program, path=path)) is None:
        pytest.skip(f"there is no {program}: scripts/kubernetes.sh builds it, if there is Go")
    test = [command, "test", RELEASE, f"--namespace={space}", "--timeout=300s"]
    with subprocess.Popen(test, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        eventually(lambda: rights(space), 30, "the test's account has rights")
        said, _ = running.communicate(timeout=patient(300))
    assert running.returncode == 0, said
    assert "Phase:          Succeeded" in said
    assert "HelmTest" in said, "the log of the test's pod"
    kept = read("pod", TEST, f"--namespace={space}")
    assert kept["status"]["phase"] == "Succeeded", "it stays, for its log"
    assert objects(space) - before == {f"pod/{TEST}"}
    assert rights(space) == []
    run([command, "uninstall", RELEASE, f"--namespace={space}", "--wait"])
    eventually(lambda: not objects(space), 60, lambda: f"nothing remains of {objects(space)}")


@pytest.mark.thorough
def test_an_uninstall_in_the_middle_of_a_test_whose_helm_was_killed_leaves_nothing(space):
    with subprocess.Popen(["helm", "test", RELEASE, f"--namespace={space}"], stdout=subprocess.DEVNULL) as running:
        eventually(lambda: rights(space), 30, "the test's account has rights")
        eventually(lambda: owner_of_the_test(space), 60, "the test's pod belongs to the release")
        running.kill()
    assert rights(space) == [TEST]
    roots = (f"--namespace={space}", "--selector=ardea.dev/role=topology")
    eventually(lambda: read("configmaps", *roots)["items"], 60, "it has submitted its topology")
    kubectl("delete", "configmap", *roots)  # for as long as it runs no uninstall is taken
    uninstall(space)
    eventually(lambda: not objects(space), 60, lambda: f"nothing remains of {objects(space)}")


def owner_of_the_test(space: str) -> object:
    found = read("pods", f"--namespace={space}", "--selector=app.kubernetes.io/component=test")["items"]
    return found and found[0]["metadata"].get("ownerReferences")


@pytest.mark.thorough
def test_an_uninstall_is_refused_while_a_topology_runs(image):
    with namespace() as space:
        install(space, *image, *SMALL)
        before = objects(space)
        ardea("submit", "kubernetes", TOPOLOGIES / "fragile.py", "--wait-secs", "240", space=space)
        topology = described("Brittle", space)["id"]
        with pytest.raises(CommandError, match=f"release {RELEASE} is not uninstalled: {topology} still runs"):
            uninstall(space)
        helm("rollback", RELEASE, "1", f"--namespace={space}", "--wait")
        helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", "--set=commonLabels.still=usable")
        assert described("Brittle", space)["state"] == "RUNNING"
        ardea("kill", "Brittle", "--wait-secs", "1", space=space)
        revisions = ("secret/sh.helm.release", "controllerrevision")
        left = {each for each in objects(space) - before if not each.startswith(revisions)}
        assert not left, "neither the topology nor the hook has left anything"
        uninstall(space)
        eventually(lambda: not objects(space), 60, lambda: f"nothing remains of {objects(space)}")
