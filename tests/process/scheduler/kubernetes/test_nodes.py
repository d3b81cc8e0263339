"""Lost nodes: one that dies with all that runs on it, one that is cut off while its pods run on."""

from __future__ import annotations

import os
import shlex
import subprocess
import time

import pytest

from tests.conftest import MARK
from tests.machine import patient
from tests.process.scheduler.kubernetes.releases import kubectl, needs_cluster, read
from tests.process.scheduler.kubernetes.running import ROUNDS, counted, nodes, pod_of, pods
from tests.process.waiting import eventually
from tests.sizes import size

COMMAND = os.environ.get("ARDEA_KUBE_NODE_COMMAND")
pytestmark = [
    pytest.mark.thorough,
    needs_cluster,
    pytest.mark.alone,
    pytest.mark.skipif(
        not COMMAND,
        reason="ARDEA_KUBE_NODE_COMMAND is unset: nobody here can take nodes down (it is given: down|cut|up N)",
    ),
    pytest.mark.timeout(size(900, 10800)),
]
PENDING = 200
"""``topology.max.spout.pending`` of the topology, which has one spout task."""
LAST = len(nodes()) if COMMAND and os.environ.get("KUBECONFIG") else 0


def node(what: str) -> None:
    """What the command starts is the cluster's, not this test's: it outlives the test's own temporary folder, too."""
    environment = {name: value for name, value in os.environ.items() if name not in (MARK, "TMPDIR")}
    subprocess.run([*shlex.split(COMMAND or ""), what, str(LAST)], env=environment, check=True, timeout=patient(180))


def ready(name: str) -> bool:
    conditions = read("node", name)["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@pytest.fixture
def lost():
    """The last node's name; it is back after the test."""
    name = nodes()[LAST - 1]
    yield name
    if not ready(name):
        bring_back(name)


def bring_back(name: str) -> None:
    """Under load, and whatever ran on while it was cut off is refused."""
    node("up")
    eventually(lambda: ready(name), 120, f"{name} is back")


def to_the_node(space: str, name: str) -> None:
    """Something runs there: who has left it once does not come back by itself."""
    if any(pod["spec"]["nodeName"] == name for pod in pods(space)):
        return
    others = [other for other in nodes() if other != name]
    kubectl("cordon", *others)
    try:
        kubectl("delete", "pod", pod_of(space, 2)["metadata"]["name"], f"--namespace={space}")
        eventually(lambda: pod_of(space, 2)["spec"].get("nodeName") == name, 90, f"container 2 is on {name}")
    finally:
        kubectl("uncordon", *others)


@pytest.mark.soak
@pytest.mark.parametrize("how", ["down", "cut"])
def test_a_lost_node_is_left_and_nothing_is_lost(space, image_name, lost, how):
    with counted(space, image_name) as topology:
        for _ in range(ROUNDS):
            to_the_node(space, lost)
            topology.whole()
            since, again = time.monotonic(), int(topology.ask("again"))
            node(how)
            eventually(lambda: not ready(lost), 60, f"{lost} is seen to be gone")
            topology.whole(since)
            again = int(topology.ask("again")) - again
            print(f"{again} numbers came once more", flush=True)
            assert again <= PENDING
            since = time.monotonic()
            bring_back(lost)
            topology.whole(since)
        topology.finish()
        assert int(topology.ask("most")) <= 2
