"""Topologies on a real cluster: what they count, how they end, and what they survive."""

from __future__ import annotations

import json

import pytest

from ardea.config import Settings
from ardea.scheduler.kubernetes import layout
from ardea.scheduler.kubernetes.master import SPARE
from ardea.scheduler.kubernetes.processes import LAST_SCRAPE
from ardea.scheduler.kubernetes.root_object import JOBS_END_WITHIN
from tests.process.scheduler.kubernetes.releases import RELEASE, ROOT, kubectl, needs_cluster, objects, read
from tests.process.scheduler.kubernetes.running import (
    ROUNDS,
    TOPOLOGIES,
    ardea,
    chart_defaults,
    counted,
    described,
    life,
    pod_of,
    pods,
    replaced,
    signal_process,
)
from tests.process.waiting import eventually
from tests.sizes import size

pytestmark = [needs_cluster, pytest.mark.timeout(size(600, 7200))]
ZOOKEEPER = f"{RELEASE}-zookeeper-0"
MASTERS_END_WITHIN = JOBS_END_WITHIN + Settings().kubernetes_grace + LAST_SCRAPE + SPARE
"""Seconds: the acting one waits for containers to hear of the end, then for a Prometheus to have seen it."""


def test_word_count_is_counted_right_completes_and_leaves_nothing(space):
    before = objects(space)
    example = ROOT / "examples" / "word_count.py"
    ended = ardea(
        "submit", "kubernetes", example, "--containers", "2", "--wait", "--wait-secs", "300", "-o", "json", space=space
    )
    assert json.loads(ended.stdout)["state"] == "SUCCEEDED"
    assert "equal, word by word" in ardea("logs", "WordCount", "report", space=space).stdout

    def complete():
        return {job["status"].get("succeeded") for job in jobs(space)} == {1}

    eventually(complete, MASTERS_END_WITHIN, "every Job is Complete")
    assert [t["state"] for t in json.loads(ardea("list", "-o", "json", space=space).stdout)["topologies"]] == [
        "SUCCEEDED"
    ]
    ardea("kill", "WordCount", space=space)
    assert objects(space) == before


def jobs(space):
    return read("jobs", f"--namespace={space}")["items"]


def test_a_failed_topology_says_why_in_describe_and_in_the_job(space):
    failing = TOPOLOGIES / "failing.py"
    ended = ardea("submit", "kubernetes", failing, "--wait", "--wait-secs", "300", space=space, code=1)
    assert "the ledger does not balance" in ended.stderr
    assert "the ledger does not balance" in described("Failing", space)["reason"]
    masters = "--selector=app.kubernetes.io/component=master,app.kubernetes.io/instance=Failing"

    def conditions():
        found = read("jobs", f"--namespace={space}", masters)["items"]
        return [{c["type"]: c["message"] for c in job["status"].get("conditions", ())} for job in found]

    def failed():
        return all("Failed" in each for each in conditions())

    eventually(failed, MASTERS_END_WITHIN, lambda: f"Jobs have failed: {conditions()}")
    assert all("the ledger does not balance" in each["TopologyFailed"] for each in conditions())
    # All of it goes when its masters' Jobs do, which own its root by now.
    owners = read("configmap", "failing", f"--namespace={space}")["metadata"]["ownerReferences"]
    found = {job["metadata"]["uid"]: job["spec"] for job in read("jobs", f"--namespace={space}", masters)["items"]}
    assert {each["uid"] for each in owners} == found.keys()
    assert {spec["ttlSecondsAfterFinished"] for spec in found.values()} == {7 * 24 * 3600}
    # The pod of the task that failed stays, with its log, although kubelet has started its container again.
    container = "--selector=app.kubernetes.io/component=container,app.kubernetes.io/instance=Failing"
    (pod,) = read("pods", f"--namespace={space}", container)["items"]
    assert pod["status"]["phase"] == "Succeeded"
    (refuses,) = (each for each in pod["status"]["containerStatuses"] if each["name"] == "refuses-0")
    assert refuses["restartCount"] == 1
    assert "exit 78" in refuses["state"]["terminated"]["message"]
    said = ardea("logs", "Failing", "refuses:0", space=space).stdout
    assert "debit 3, credit 2" in said
    assert "--- not started again: exit 78 (refuses-0: the ledger does not balance" in said
    assert "--- life 2" not in said


@pytest.mark.thorough
def test_a_manager_that_cannot_go_on_ends_the_topology_and_its_log_stays(space):
    ardea("submit", "kubernetes", TOPOLOGIES / "quiet.py", "--wait-secs", "240", space=space)
    pod, topology = pod_of(space, 1)["metadata"]["name"], described("Quiet", space)["id"]
    life_counter = layout.process_folder(topology, 1, "stream-manager") / "lives" / "stream-manager"
    kubectl("exec", pod, f"--namespace={space}", "-c", "stream-manager", "--", "cp", "/dev/null", str(life_counter))
    signal_process(space, pod, "stream-manager")  # it cannot be started again
    eventually(lambda: described("Quiet", space)["state"] == "FAILED", 60, "it has failed")
    reason = described("Quiet", space)["reason"]
    assert f"{pod} cannot go on: stream-manager: stream-manager: exit 78 (could not be started" in reason
    container = "--selector=app.kubernetes.io/component=container"

    def phases():
        return {
            p["metadata"]["name"]: p["status"]["phase"]
            for p in read("pods", f"--namespace={space}", container)["items"]
        }

    eventually(lambda: phases() == {pod: "Succeeded"}, 60, lambda: f"its pod has ended, and stays: {phases()}")
    said = ardea("logs", "Quiet", "stream-manager", space=space).stdout
    assert "--- life 1 started" in said
    assert "exit 78 (could not be started" in said
    assert "not started again" in said
    assert "--- life 2" not in said


@pytest.mark.thorough
def test_a_python_that_differs_is_refused_before_anything_runs(space, tmp_path):
    defaults = ("--defaults", chart_defaults(space, tmp_path))
    options = ("--dry-run", "--include-secrets", "-o", "json", *defaults)
    dry = ardea("submit", "kubernetes", TOPOLOGIES / "counted.py", *options, space=space)
    printed = dry.stdout.replace(r"\"python\":\"3.", r"\"python\":\"2.")
    assert printed != dry.stdout
    kubectl("apply", "--server-side", "-f", "-", stdin=printed)
    eventually(lambda: described("Counted", space)["pods"], 60, "its pods are there")

    def said():
        return [row["last_reason"] for row in described("Counted", space)["processes"]] + [
            status.get("state", {}).get("terminated", {}).get("message", "")
            for pod in pods(space)
            for status in pod["status"].get("initContainerStatuses", ())
        ]

    eventually(lambda: any("submitted with Python 2." in text for text in said()), 120, lambda: f"refused: {said()}")
    ardea("kill", "Counted", space=space)


@pytest.mark.thorough
@pytest.mark.soak
def test_a_task_that_takes_too_much_memory_dies_alone(space, image_name):
    with counted(space, image_name, TOPOLOGIES / "greedy.py", "--set", f"greedy.deaths={ROUNDS}") as topology:
        for deaths in range(1, ROUNDS + 1):
            eventually(lambda d=deaths: life(space, "greedy:0") > d, 90, "it was killed and started again")
        topology.whole()
        others = {row["name"]: row["restarts"] for row in described("Counted", space)["processes"]}
        assert [name for name, count in others.items() if count and not name.startswith("greedy")] == []
        topology.finish()


@pytest.mark.thorough
@pytest.mark.soak
def test_a_pod_that_is_ended_is_emptied_first(space, image_name):
    """At most once, so that whatever was lost is missing at the end."""
    with counted(space, image_name, TOPOLOGIES / "untracked.py") as topology:
        containers = {number: json.dumps(pod_of(space, number)["spec"]["containers"]) for number in (1, 2)}
        (without,) = (number for number, inside in containers.items() if "numbers-0" not in inside)
        for number in range(size(2, 10)):
            topology.whole(replaced(space, without, evicted=number % 2 == 1))
        assert topology.ask("again") == "0"
        topology.finish()
