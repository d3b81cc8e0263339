"""Lost nodes: one that dies with all that runs on it, one that is cut off while its pods run on."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest

from tests.conftest import MARK
from tests.process.kubernetes.releases import needs_cluster, read
from tests.process.kubernetes.running import counted, nodes, pods
from tests.process.waiting import eventually

COMMAND = os.environ.get("ARDEA_KUBE_NODE_COMMAND")
pytestmark = [
    needs_cluster,
    pytest.mark.skipif(
        not COMMAND,
        reason="ARDEA_KUBE_NODE_COMMAND is unset: nobody here can take nodes down (it is given: down|cut|up N)",
    ),
    pytest.mark.timeout(900),
]
LAST = len(nodes()) if COMMAND and os.environ.get("KUBECONFIG") else 0


def node(what: str) -> None:
    """What the command starts is the cluster's, not this test's: it outlives the test's own temporary folder, too."""
    environment = {name: value for name, value in os.environ.items() if name not in (MARK, "TMPDIR")}
    subprocess.run([*shlex.split(COMMAND or ""), what, str(LAST)], env=environment, check=True, timeout=180)


def ready(name: str) -> bool:
    conditions = read("node", name)["status"]["conditions"]
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


@pytest.fixture
def lost():
    """The last node's name; it is back after the test."""
    name = nodes()[LAST - 1]
    yield name
    node("up")
    eventually(lambda: ready(name), 120, f"{name} is back")


@pytest.mark.parametrize("how", ["down", "cut"])
def test_a_lost_node_is_left_and_nothing_is_lost(space, image_name, lost, how):
    with counted(space, image_name) as topology:
        assert any(pod["spec"]["nodeName"] == lost for pod in pods(space)), "nothing runs on the node"
        node(how)
        eventually(lambda: not ready(lost), 60, f"{lost} is seen to be gone")
        topology.whole()
        topology.finish()
