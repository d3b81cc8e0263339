"""One topology under load on a real cluster: verbs, lost processes and pods, updates; in the end nothing is missing."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.process.scheduler.kubernetes.releases import RELEASE, kubectl, needs_cluster, read
from tests.process.scheduler.kubernetes.running import (
    COUNTED,
    ROUNDS,
    WHOLE_WITHIN,
    ardea,
    described,
    life,
    pods,
    replaced,
    signal_process,
)
from tests.process.waiting import eventually
from tests.sizes import size

pytestmark = [needs_cluster, pytest.mark.timeout(size(600, 7200))]
ZOOKEEPER = f"{RELEASE}-zookeeper-0"
RACE = ("middle:3", "middle:4")
"""What two people want at the same moment."""


def living(space):
    """The pods' uids by container; of the masters' by name."""
    found = {}
    for pod in pods(space):
        labels = pod["metadata"]["labels"]
        job = labels["batch.kubernetes.io/job-name"]
        found.setdefault(job.removeprefix("counted-"), set()).add(pod["metadata"]["uid"])
    return found


def settled(space, expected):
    """The pods when only these Jobs are left, each with one pod."""
    eventually(
        lambda: sorted(living(space)) == sorted(expected) and all(len(uids) == 1 for uids in living(space).values()),
        60,
        lambda: f"pods of {expected}: {living(space)}",
    )
    return living(space)


def tasks(space, component):
    status = described("Counted", space)["status"]
    return sorted(name for name in status["tasks"] if name.rpartition("-")[0] == component)


def kept(space, kind, role):
    found = read(kind, f"--namespace={space}", f"--selector=ardea.dev/role={role}")["items"]
    return sorted(each["metadata"]["name"] for each in found)


def update(space, *arguments, code=0):
    return ardea("update", "Counted", *arguments, space=space, code=code)


def test_the_verbs_work_with_only_a_kubeconfig(topology):
    space = topology.space
    assert described("Counted", space)["status"]["tasks"]["numbers-0"]["state"] == "ACTIVE"
    assert "Counted" in ardea("list", space=space).stdout
    assert "numbers-0" in ardea("top", "Counted", "--once", space=space).stdout
    assert "granted" in ardea("doctor", space=space).stdout
    ardea("deactivate", "Counted", space=space)
    eventually(lambda: described("Counted", space)["state"] == "PAUSED", 30, "it is paused")
    ardea("activate", "Counted", space=space)
    assert "heron_instance" in ardea("debug", "stacks", "Counted", "middle-0", space=space).stdout
    assert ardea("debug", "Counted", "middle", "--lines", "2", space=space).stdout.count("middle-") == 2
    lives = {task: life(space, task) for task in ("middle:0", "middle:1")}
    ardea("restart", "Counted", "--container", "1", space=space)
    topology.whole()
    assert ardea("logs", "Counted", "numbers:0", space=space).stdout
    assert {task: life(space, task) for task in lives} != lives


@pytest.mark.thorough
@pytest.mark.soak
def test_kill_9_inside_an_instance_loses_nothing(topology):
    space = topology.space
    for component in size(("middle",), ("middle", "written", "numbers")) * ROUNDS:
        task, called = f"{component}:0", f"{component}-0"
        former = life(space, task)
        pod = next(p for p in pods(space) if called in json.dumps(p["spec"]["containers"]))
        since = time.monotonic()
        signal_process(space, pod["metadata"]["name"], called)
        eventually(lambda t=task, f=former: life(space, t) > f, WHOLE_WITHIN, f"{task} was started again")
        topology.whole(since)


@pytest.mark.soak
def test_a_pod_lost_again_and_again_is_whole_each_time(topology, servers):
    for number in range(size(2, 10, whole=4)):
        topology.whole(replaced(topology.space, 2, evicted=number % 2 == 1))
    for _ in range(ROUNDS):
        lose_zookeeper(servers, topology)


def lose_zookeeper(servers, topology):
    """Its only pod: nobody reaches the state until there is another."""
    where = f"--namespace={servers.split('.')[1]}"
    first = uid_of(ZOOKEEPER, where)
    since = time.monotonic()
    kubectl("delete", "pod", ZOOKEEPER, where)
    topology.works()
    eventually(lambda: uid_of(ZOOKEEPER, where) not in (first, None), 60, "another pod is there")
    kubectl("wait", f"pod/{ZOOKEEPER}", "--for=condition=Ready", "--timeout=120s", where)
    topology.whole(since)


def uid_of(pod, where):
    found = read("pods", where, f"--field-selector=metadata.name={pod}")["items"]
    return found[0]["metadata"]["uid"] if found else None


@pytest.mark.thorough
def test_a_standby_takes_over(topology):
    space = topology.space
    term = described("Counted", space)["status"]["term"]
    for pod in pods(space, "app.kubernetes.io/component=master")[:1]:
        kubectl("delete", "pod", pod["metadata"]["name"], f"--namespace={space}", "--wait=false")
    topology.works()
    for pod in pods(space, "app.kubernetes.io/component=master")[:1]:
        signal_process(space, pod["metadata"]["name"], "topology-master")
    topology.whole()
    assert described("Counted", space)["status"]["term"] > term


def test_more_tasks_fewer_tasks_and_a_new_version(topology, tmp_path):
    space = topology.space
    before = ["container-1", "container-2", "master-1", "master-2"]
    first = settled(space, before)
    update(space, "--component-parallelism", "middle:4")
    more = settled(space, ["container-3", *before])
    assert {job: more[job] for job in before} == first, "a pod was replaced although its tasks are the same"
    assert tasks(space, "middle") == ["middle-0", "middle-1", "middle-2", "middle-3"]
    assert "counted-key-3" in kept(space, "secrets", "key")
    topology.works()
    old = next(p for p in pods(space) if "middle-0" in json.dumps(p["spec"]["containers"]))
    signal_process(space, old["metadata"]["name"], "middle-0")  # what it finds in its pod is the former plan
    topology.whole()
    update(space, "--component-parallelism", "middle:2")
    assert settled(space, before) == first
    assert "counted-key-3" not in kept(space, "secrets", "key")
    topology.works()

    newer = tmp_path / "counted.py"
    newer.write_text(COUNTED.read_text().replace("self.emit(list(tup.values))", "self.emit([tup[0] + 0])"))
    code = kept(space, "configmaps", "code")
    update(space, newer, "--set", "topology.max.spout.pending=150")
    newest = settled(space, before)
    assert {job for job in before if newest[job] != first[job]} == {"container-1", "container-2"}
    assert len(kept(space, "configmaps", "code")) == 1
    assert kept(space, "configmaps", "code") != code
    topology.works()

    with ThreadPoolExecutor() as pool:
        ends = list(pool.map(lambda wanted: update(space, "--component-parallelism", wanted, code=None), RACE))
    codes = [end.returncode for end in ends]
    assert sorted(codes) in ([0, 1], [0, 7]), [end.stderr for end in ends]
    won = int(RACE[codes.index(0)].partition(":")[2])
    assert tasks(space, "middle") == [f"middle-{index}" for index in range(won)]
    containers = sorted({pod["metadata"]["labels"]["ardea.dev/container"] for pod in pods(space)})
    assert kept(space, "secrets", "key") == [f"counted-key-{number}" for number in containers]
    assert len(kept(space, "configmaps", "code")) == 1
    topology.whole()


@pytest.mark.thorough
def test_a_version_that_does_not_come_up_is_put_back(topology, tmp_path):
    space = topology.space
    code = kept(space, "configmaps", "code")
    broken = tmp_path / "counted.py"
    broken.write_text(COUNTED.read_text().replace("self.collector = Collector()", "raise RuntimeError('broken')", 1))
    said = update(space, broken, "--wait-secs", "20", code=1).stderr
    assert "does not work by it yet" in said
    assert "after 20 s" in said
    assert "the topology goes on as it was" in said
    assert kept(space, "configmaps", "code") == code
    topology.whole()
    said = update(space, "--component-parallelism", "written:3", code=6).stderr
    assert "written: rows are grouped by keys" in said
