"""Pods as a platform team wants them, on a real cluster, and the removal of what has ended."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.process.scheduler.kubernetes.releases import CHART, RELEASE, helm, kubectl, needs_cluster, objects
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, described, first_node, pod_of, pods
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.thorough, pytest.mark.timeout(900)]
FURNISHED = TOPOLOGIES / "furnished.py"
USER = 4711
KEY = "heron.kubernetes.pod.spec"


def setting(spec):
    return ("--set", f"{KEY}={json.dumps(spec)}")


@pytest.fixture
def runtime_class():
    name = f"ardea-{uuid.uuid4().hex[:8]}"
    kind = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}
    kubectl("create", "-f", "-", stdin=json.dumps(kind))
    yield name
    kubectl("delete", "runtimeclass", name)


@pytest.fixture
def spec(runtime_class):
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [first_node()]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}
    return {
        "runtimeClassName": runtime_class,
        "affinity": {"nodeAffinity": required},
        "topologySpreadConstraints": [spread],
        "securityContext": {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER},
        "hostAliases": [{"ip": "192.0.2.1", "hostnames": ["feed"]}],
    }


def container(pod, name):
    (found,) = (c for c in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]) if c["name"] == name)
    return found


def restarts(pod, name):
    (found,) = (each for each in pod["status"]["initContainerStatuses"] if each["name"] == name)
    return found["restartCount"]


def test_a_topology_runs_in_pods_of_ones_own_and_goes_a_while_after_its_end(space, spec):
    pod_spec = json.dumps({"tolerations": [{"key": "dedicated", "operator": "Exists"}]})
    helm("upgrade", RELEASE, CHART, f"--namespace={space}", "--reuse-values", f"--set-json=topology.podSpec={pod_spec}")
    before = objects(space)
    masters = ("--set", "topology.master.cpu=0.15", "--set", "topology.master.ram=300MiB")
    ttl = ("--set", "heron.kubernetes.ttl.secs=5")
    ardea("submit", "kubernetes", FURNISHED, *setting(spec), *masters, *ttl, "--wait-secs", "240", space=space)

    worker = pod_of(space, 1)
    (master,) = pods(space, "app.kubernetes.io/component=master")
    for pod in (worker, master):
        assert pod["spec"]["runtimeClassName"] == spec["runtimeClassName"]
        assert pod["spec"]["nodeName"] == first_node()
        assert pod["spec"]["hostAliases"] == spec["hostAliases"]
        assert "dedicated" in {each.get("key") for each in pod["spec"]["tolerations"]}
    order = [each["name"] for each in worker["spec"]["initContainers"]]
    assert order == ["prepare", "fetch", "beats", "stream-manager", "metrics-manager"]
    assert container(worker, "reads-0")["securityContext"]["readOnlyRootFilesystem"] is False
    resources = container(master, "topology-master")["resources"]
    assert (resources["requests"]["cpu"], resources["limits"]["memory"]) == ("150m", str(300 << 20))
    in_pod = ("exec", worker["metadata"]["name"], f"--namespace={space}", "-c")
    for name in ("reads-0", "stream-manager", "beats"):
        assert kubectl(*in_pod, name, "--", "id", "-u").strip() == str(USER)
    assert "fetches" in ardea("logs", "Furnished", "fetch", space=space).stdout

    for wrong, why in (({"hostNetwork": True}, "is Ardea's"), ({"runtimClassName": "x"}, "runtimClassName")):
        said = ardea("update", "Furnished", *setting(wrong), space=space, code=6).stderr
        assert why in said
    ardea("restart", "Furnished", "--container", "1", space=space)
    assert restarts(pod_of(space, 1), "beats") == 0
    assert described("Furnished", space)["state"] == "RUNNING"

    kubectl(*in_pod, "beats", "--", "touch", "/given/enough")
    eventually(lambda: objects(space) == before, 120, lambda: f"all of it goes: {objects(space) - before}")


def test_what_the_cluster_does_not_take_leaves_nothing(space):
    before = objects(space)
    for wrong, why in (
        ({"runtimClassName": "x"}, "runtimClassName"),
        ({"affinity": {"nodeAffinity": "here"}}, "no part of a PodSpec"),
        ({"nodeSelector": {"no": "such"}}, "no node takes the pod of"),
        ({"initContainers": [{"name": "a", "volumeMounts": [{"name": "home", "mountPath": "/x"}]}]}, "mounts home"),
    ):
        said = ardea("submit", "kubernetes", FURNISHED, *setting(wrong), space=space, code=6).stderr
        assert why in said
        assert objects(space) == before
