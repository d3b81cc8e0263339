"""Effectively once on a cluster, snapshots on a claim: pods, a process and the master die, and the counts are exact."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.process.scheduler.kubernetes.releases import kubectl, needs_cluster
from tests.process.scheduler.kubernetes.running import (
    RESTRICTED,
    TOPOLOGIES,
    ardea,
    described,
    first_node,
    pod_of,
    pods,
    replaced,
    signal_process,
)
from tests.process.scheduler.kubernetes.topologies.remembered import word
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
WORDS = 6_000
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "snapshots"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def submit(space, *options, code=0, topology="Remembered", words=WORDS):
    where = json.dumps({"nodeSelector": {"kubernetes.io/hostname": first_node()}})
    chosen = ("--set", f"heron.kubernetes.pod.spec={where}", "--set", f"test.words={words}")
    file = f"{TOPOLOGIES / 'remembered.py'}:{topology}"
    return ardea("submit", "kubernetes", file, *chosen, *options, "--wait-secs", "240", space=space, code=code)


def snapshots(space, name="Remembered"):
    """What describe says of them; None while the master does not answer."""
    status = described(name, space)["status"]
    return status and status["snapshots"]


def committed(space, name="Remembered"):
    """The last one: term and counter."""
    said = snapshots(space, name)
    return tuple(map(int, said["last"]["number"].split("."))) if said and said["last"] else (0, 0)


def goes_on(space, after, name="Remembered"):
    """A snapshot counts that was taken later."""
    late = lambda: f"a snapshot after {after}: {snapshots(space, name)}"  # noqa: E731
    eventually(lambda: committed(space, name) > after, 120, late)


def ended(space, name="Remembered"):
    return described(name, space)["state"] == "SUCCEEDED"


def counts(space, name="Remembered", tasks=2):
    """What the counters have logged last."""
    total = Counter()
    for task in range(tasks):
        lines = re.findall(r"counted ({.*})", ardea("logs", name, f"count:{task}", space=space).stdout)
        total.update(json.loads(lines[-1]))
    return total


def listed(space, name):
    return json.loads(ardea("snapshots", name, "-o", "json", space=space).stdout)


def in_the_claim(space):
    """What lies in the claim, below its root."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "looks"},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": first_node()},
            "containers": [
                {
                    "name": "looks",
                    "image": "zookeeper:3.9",
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["sh", "-c", "ls /snapshots && echo all"],
                    "volumeMounts": [{"name": "snapshots", "mountPath": "/snapshots"}],
                    "securityContext": RESTRICTED,
                }
            ],
            "securityContext": {
                "runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": [{"name": "snapshots", "persistentVolumeClaim": {"claimName": "snapshots"}}],
        },
    }  # fmt: skip
    where = f"--namespace={space}"
    kubectl("apply", where, "-f", "-", stdin=json.dumps(pod))
    kubectl("wait", where, "--for=jsonpath={.status.phase}=Succeeded", "pod/looks", "--timeout=120s")
    said = eventually(lambda: (log := kubectl("logs", where, "looks").split())[-1:] == ["all"] and log, 60, "its log")
    kubectl("delete", "pod", "looks", where)
    return said


def events(space):
    """The reasons of those that Ardea has made of the topologies' roots."""
    found = json.loads(kubectl("get", "events", f"--namespace={space}", "-o", "json"))["items"]
    return {
        e["reason"]
        for e in found
        if e["source"].get("component") == "ardea" and e["involvedObject"]["kind"] == "ConfigMap"
    }


def test_pods_processes_and_the_master_die_and_the_counts_are_exact(space):
    kubectl("apply", f"--namespace={space}", "-f", "-", stdin=json.dumps(CLAIM))
    submit(space)
    goes_on(space, (0, 0))
    pod = pod_of(space, 1)
    task = pod["spec"]["containers"][0]["name"]
    before = committed(space)
    signal_process(space, pod["metadata"]["name"], task)
    goes_on(space, before)
    for evicted in (False, True):
        before = committed(space)
        replaced(space, 2, evicted=evicted)
        goes_on(space, before)
    master = pods(space, "app.kubernetes.io/component=master")[0]["metadata"]["name"]
    before = committed(space)
    kubectl("delete", "pod", master, f"--namespace={space}", "--wait=false")
    goes_on(space, before)
    eventually(lambda: ended(space), 180, lambda: f"it ends: {snapshots(space)}")
    assert counts(space) == Counter(word(spout, place) for spout in (0, 1) for place in range(WORDS))


def test_another_topology_begins_from_a_savepoint_where_one_was_killed(space):
    """Under another name, with other parallelism; the store of the former one goes, and the savepoint stays."""
    kubectl("apply", f"--namespace={space}", "-f", "-", stdin=json.dumps(CLAIM))
    refused = submit(space, "--from", "/snapshots/savepoints/none", code=None)
    said = refused.stdout + refused.stderr
    assert refused.returncode == 1, said
    assert "the savepoint /snapshots/savepoints/none: no savepoint lies there" in said
    ardea("kill", "Remembered", space=space)
    there = json.loads(submit(space, "-o", "json", words=2 * WORDS).stdout)["id"]
    goes_on(space, (0, 0))
    first = json.loads(ardea("savepoint", "Remembered", "-o", "json", space=space).stdout)
    now = listed(space, "Remembered")
    assert now["committed"]["files"] >= 4
    assert [each["folder"] for each in now["savepoints"]] == [first["folder"]]
    eventually(lambda: "SavepointWritten" in events(space), 60, lambda: f"{events(space)}")
    killed = ardea("kill", "Remembered", "--savepoint", "--to", "/snapshots/last", space=space)
    assert "stay" not in killed.stderr, killed.stderr
    left = in_the_claim(space)
    assert {"last", "savepoints"} <= set(left)
    assert there not in left
    submit(space, "--from", "/snapshots/last", topology="Again", words=2 * WORDS)
    goes_on(space, (0, 1), "Again")
    assert listed(space, "Again")["savepoints"] == []
    eventually(lambda: ended(space, "Again"), 240, lambda: f"it ends: {snapshots(space, 'Again')}")
    assert counts(space, "Again", 3) == Counter(word(spout, place) for spout in (0, 1) for place in range(2 * WORDS))


def test_a_store_that_cannot_be_written_is_said_at_submit(space):
    # No claim: a cluster for tests may have eight volumes, and all tests together need them.
    volumes = [{"name": "snapshots", "mountPath": "/snapshots", "emptyDir": {}}]
    where = "--set", f"heron.kubernetes.volumes={json.dumps(volumes)}"
    ended = submit(space, *where, "--set", "topology.stateful.storage=/proc/snapshots", code=None)
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "snapshots cannot be kept at /proc/snapshots/Remembered" in said, said
