"""Effectively once on a cluster, snapshots on a claim: pods, a process and the master die, and the counts are exact."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from tests.process.scheduler.kubernetes.releases import kubectl, needs_cluster
from tests.process.scheduler.kubernetes.running import (
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


def submit(space, *options, code=0):
    where = json.dumps({"nodeSelector": {"kubernetes.io/hostname": first_node()}})
    chosen = ("--set", f"heron.kubernetes.pod.spec={where}", "--set", f"test.words={WORDS}")
    file = TOPOLOGIES / "remembered.py"
    return ardea("submit", "kubernetes", file, *chosen, *options, "--wait-secs", "240", space=space, code=code)


def snapshots(space):
    """What describe says of them; None while the master does not answer."""
    status = described("Remembered", space)["status"]
    return status and status["snapshots"]


def committed(space):
    """The last one: term and counter."""
    said = snapshots(space)
    return tuple(map(int, said["last"]["number"].split("."))) if said and said["last"] else (0, 0)


def goes_on(space, after):
    """A snapshot counts that was taken later."""
    eventually(lambda: committed(space) > after, 120, lambda: f"a snapshot after {after}: {snapshots(space)}")


def ended(space):
    return described("Remembered", space)["state"] == "SUCCEEDED"


def counts(space):
    """What the counters have logged last."""
    total = Counter()
    for task in ("count:0", "count:1"):
        lines = re.findall(r"counted ({.*})", ardea("logs", "Remembered", task, space=space).stdout)
        total.update(json.loads(lines[-1]))
    return total


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


def test_a_store_that_cannot_be_written_is_said_at_submit(space):
    kubectl("apply", f"--namespace={space}", "-f", "-", stdin=json.dumps(CLAIM))
    ended = submit(space, "--set", "topology.stateful.storage=/proc/snapshots", code=None)
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "snapshots cannot be kept at /proc/snapshots/Remembered" in said, said
