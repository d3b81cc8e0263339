"""What `ardea list` and `kubectl` say of topologies that are not well (docs/health.md)."""

from __future__ import annotations

import json
import re
import time

import pytest

from tests.machine import patient
from tests.process.scheduler.kubernetes.releases import RELEASE, install, kubectl, namespace, needs_cluster, read
from tests.process.scheduler.kubernetes.running import SMALL, TOPOLOGIES, ardea, described, pod_of, pods
from tests.process.waiting import eventually

pytestmark = [needs_cluster, pytest.mark.timeout(600)]
FRAGILE = TOPOLOGIES / "fragile.py"
DIED = r"died \d+ times in \d+ s: ValueError: no such table at fragile\.py:\d+ \(pid \d+\)"
_STOP = """
import os, signal, sys
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        command = open(f"/proc/{process}/cmdline", "rb").read()
    except OSError:
        continue
    if int(process) != os.getpid() and b"ardea.supervisor" in command and sys.argv[1].encode() in command:
        os.kill(int(process), signal.SIGSTOP)
        print("stopped", process)
"""


def listed(space):
    """The lines of `ardea list`."""
    return ardea("list", space=space).stdout.splitlines()


def health(space):
    """In one word; None: it has none, as after the end."""
    (topology,) = json.loads(ardea("list", "-o", "json", space=space).stdout)["topologies"]
    return topology["health"] and topology["health"]["state"]


def becomes(space, word, seconds):
    eventually(lambda: health(space) == word, seconds, lambda: f"it is {word}: {listed(space)}")


def told(space, pattern, seconds):
    """`ardea list` has such a line."""
    eventually(lambda: any(re.fullmatch(pattern, line) for line in listed(space)), seconds, lambda: str(listed(space)))


def condition(pod, kind):
    found = (c for c in pod["status"].get("conditions", ()) if c["type"] == kind)
    return next(((c["status"], c.get("message", "")) for c in found), None)


def test_a_process_that_dies_again_and_again_is_seen_by_everybody(space):
    """One that dies from the start on fails the topology, one that dies later does not."""
    broken = ("--set", "fragile.from.the.start=true")
    refused = ardea("submit", "kubernetes", FRAGILE, *broken, "--wait-secs", "240", space=space, code=1)
    assert re.search(r"fragile-0 died \d times before it ever worked: ValueError: no such table", refused.stderr)
    assert health(space) is None
    ardea("submit", "kubernetes", FRAGILE, "--wait-secs", "240", space=space)
    becomes(space, "HEALTHY", 15)
    pod = pod_of(space, 1)["metadata"]["name"]
    kubectl("exec", pod, f"--namespace={space}", "-c", "fragile-0", "--", "touch", "/tmp/broken")
    since = time.monotonic()
    becomes(space, "CRASHING", 30)
    took = time.monotonic() - since
    print(f"CRASHING after {took:.1f} s")
    assert took <= patient(15)
    told(space, rf"Brittle-\w+: fragile-0 since \d+ s: {DIED}", 15)

    def ready():
        return condition(pod_of(space, 1), "Ready")[0]

    eventually(lambda: ready() == "False", 30, "the pod is not ready")
    said = condition(pod_of(space, 1), "ardea.dev/Healthy")
    assert said[0] == "False"
    assert re.fullmatch(rf"fragile-0 {DIED}", said[1])
    events = read("events", f"--namespace={space}", "--field-selector=reason=Crashing")["items"]
    assert {event["involvedObject"]["name"] for event in events} == {"brittle-container-1"}
    document = described("Brittle", space)
    assert document["health"]["state"] == "CRASHING"
    (row,) = (row for row in document["processes"] if row["name"] == "fragile-0")
    assert row["restarts"] >= 3
    assert pod_of(space, 1)["metadata"]["name"] == pod, "nobody ends a pod for a task that crashes"
    ardea("kill", "Brittle", "--wait-secs", "1", space=space)


@pytest.mark.thorough
def test_who_cannot_start_is_named_with_the_clusters_words(space):
    ardea("submit", "kubernetes", FRAGILE, "--image", "ardea:none", "--no-wait", space=space)
    told(space, r"Brittle-\w+: container-[01]: brittle-\S+ prepare: (ErrImagePull|ImagePullBackOff).*", 60)
    assert health(space) == "STARTING"
    ardea("kill", "Brittle", space=space)
    selector = ("--set", 'heron.kubernetes.pod.spec={"nodeSelector": {"nowhere": "true"}}')
    grow = ("--set", "heron.kubernetes.nodes.grow=true")
    ardea("submit", "kubernetes", FRAGILE, *selector, *grow, "--no-wait", space=space)
    told(space, r"Brittle-\w+: container-[01]: brittle-\S+ cannot be scheduled: 0/\d+ nodes are available.*", 60)
    assert health(space) == "STARTING"


@pytest.mark.thorough
def test_a_root_without_jobs_is_an_orphan(space):
    ardea("submit", "kubernetes", FRAGILE, "--wait-secs", "240", space=space)
    kubectl("delete", "jobs", "--all", f"--namespace={space}", "--cascade=foreground")
    becomes(space, "ORPHANED", 60)
    ardea("kill", "Brittle", space=space)
    assert listed(space) == []


@pytest.mark.thorough
def test_masters_that_are_cut_off_from_zookeeper_are_unreachable_and_say_so(image):
    with namespace() as space:
        install(space, *image, *SMALL, "zookeeper.persistence.enabled=true")
        ardea("submit", "kubernetes", FRAGILE, "--wait-secs", "240", space=space)
        becomes(space, "HEALTHY", 15)
        where = f"--namespace={space}"
        kubectl("scale", f"statefulset/{RELEASE}-zookeeper", "--replicas=0", where)
        becomes(space, "UNREACHABLE", 75)
        masters = "app.kubernetes.io/component=master"

        def states(kind):
            return {(condition(pod, kind) or ("?",))[0] for pod in pods(space, masters)}

        eventually(lambda: states("Ready") == {"False"}, 60, "masters' pods are not ready")
        eventually(lambda: states("ardea.dev/Healthy") == {"False"}, 60, "they say why")
        told(space, r"Brittle-\w+: brittle-master-\d-\w+: cut off from the topology's state: .*", 30)
        assert condition(pod_of(space, 1), "Ready")[0] == "True", "data flows on"
        kubectl("scale", f"statefulset/{RELEASE}-zookeeper", "--replicas=1", where)
        becomes(space, "HEALTHY", 120)


@pytest.mark.thorough
def test_liveness_ends_a_container_whose_supervisor_stands_still(space, image_name):
    ardea("submit", "kubernetes", FRAGILE, "--wait-secs", "240", space=space)
    becomes(space, "HEALTHY", 15)
    folder = f"{described('Brittle', space)['id']}/container-1/fragile-0"
    stop_supervisor(image_name, pod_of(space, 1)["spec"]["nodeName"], folder)

    def restarts():
        return {s["name"]: s["restartCount"] for s in pod_of(space, 1)["status"]["containerStatuses"]}["fragile-0"]

    eventually(lambda: any("supervisor stands still" in line for line in listed(space)), 45, lambda: str(listed(space)))
    eventually(lambda: restarts() == 1, 180, "kubelet has started it again")
    becomes(space, "HEALTHY", 60)


def stop_supervisor(image, node, folder):
    """SIGSTOP, from a pod that sees all processes of the node."""
    container = {
        "name": "stops",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-P", "-c", _STOP, folder],
        "securityContext": {"runAsUser": 0, "privileged": True},
    }
    spec = {"hostPID": True, "nodeName": node, "restartPolicy": "Never", "containers": [container]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stops"}, "spec": spec}
    with namespace() as space:
        kubectl("label", "namespace", space, "pod-security.kubernetes.io/enforce=privileged", "--overwrite")
        where = f"--namespace={space}"
        kubectl("create", "-f", "-", where, stdin=json.dumps(pod))
        kubectl("wait", "pod/stops", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", where)
        assert "stopped" in kubectl("logs", "stops", where)
