"""Spark on a real cluster: driver, spouts and executors in pods of their own, and no volume between them."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from pathlib import Path

import pytest

from tests.process.scheduler.kubernetes.conftest import BUILT
from tests.process.scheduler.kubernetes.releases import ROOT, kubectl, needs_cluster, run
from tests.process.scheduler.kubernetes.running import TOPOLOGIES, ardea, described, nodes, pod_of, pods, signal_process
from tests.process.scheduler.kubernetes.spark_image import lay_out
from tests.process.waiting import eventually

pytestmark = [pytest.mark.thorough, needs_cluster, pytest.mark.timeout(600)]
SPARK_IMAGE = "ardea:spark-test"
SPARKED = TOPOLOGIES / "sparked.py"
ROWS = 8000
DRIVER, SPOUTS = 1, 2
"""Containers of the plan."""


@pytest.fixture(scope="module")
def spark_image(image_name):
    """``ARDEA_SPARK_IMAGE`` is one that the nodes have; else it is built on that of the other tests, and loaded."""
    if name := os.environ.get("ARDEA_SPARK_IMAGE"):
        return name
    if not (load := os.environ.get("ARDEA_KUBE_LOAD")) or image_name != BUILT:
        pytest.skip("ARDEA_SPARK_IMAGE is unset: the cluster has no image of Ardea with Spark to run")
    with tempfile.TemporaryDirectory() as context:
        lay_out(Path(context), f"docker.io/library/{image_name}")
        run(["env", f"CONTEXT={context}", ROOT / "scripts" / "image.sh", SPARK_IMAGE], seconds=300)
    run([*shlex.split(load), SPARK_IMAGE], seconds=300)
    return SPARK_IMAGE


ACCOUNT = [
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "spark"}},
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "spark"},
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["pods", "configmaps", "persistentvolumeclaims"],
                "verbs": ["create", "get", "list", "watch", "update", "patch", "delete", "deletecollection"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "spark"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "spark"},
        "subjects": [{"kind": "ServiceAccount", "name": "spark"}],
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/service-account-token",
        "metadata": {"name": "spark-token", "annotations": {"kubernetes.io/service-account.name": "spark"}},
    },
]
"""What docs/spark.md asks for."""


def progress(space, name):
    """Of the spout and its driver: rows acked, tasks of Spark, and how many of them are done."""
    components = (described(name, space)["status"] or {}).get("components", {})
    spout, driver = components.get("rows", {}), components.get("rows_driver", {})
    return spout.get("acked"), driver.get("job_tasks"), driver.get("job_tasks_done")


def kinds_of_volumes(pod):
    return {kind for volume in pod["spec"]["volumes"] for kind in volume if kind != "name"}


@pytest.mark.skipif(bool(os.environ.get("KUBECONFIG")) and len(nodes()) < 2, reason="the cluster has one node")
def test_driver_and_spouts_on_different_nodes_without_a_shared_volume(space, spark_image):
    ardea("submit", "kubernetes", f"{SPARKED}:Sparked", "--image", spark_image, "--wait-secs", "240", space=space)
    driver, spouts = pod_of(space, DRIVER), pod_of(space, SPOUTS)
    assert [container["name"] for container in driver["spec"]["containers"]] == ["rows-driver-0"]
    assert {"rows-0", "rows-1"} <= {container["name"] for container in spouts["spec"]["containers"]}
    assert driver["spec"]["nodeName"] != spouts["spec"]["nodeName"]
    assert kinds_of_volumes(driver) | kinds_of_volumes(spouts) == {"emptyDir", "configMap", "secret"}

    eventually(
        lambda: progress(space, "Sparked") == (ROWS // 2, 4, 2),
        120,
        lambda: f"half of it is done: {progress(space, 'Sparked')}",
    )
    assert "rows_driver 2/4 tasks" in ardea("describe", "Sparked", space=space).stdout
    signal_process(space, spouts["metadata"]["name"], "rows-0")
    kubectl("exec", driver["metadata"]["name"], f"--namespace={space}", "-c", "rows-driver-0", "--", "touch", "/tmp/go")
    eventually(lambda: described("Sparked", space)["state"] == "SUCCEEDED", 150, "it ends")
    told = ardea("logs", "Sparked", "arrived", space=space).stdout
    assert f"arrived: {ROWS} numbers, sum {ROWS * (ROWS - 1) // 2}" in told
    assert ardea("logs", "Sparked", "rows:0", space=space).stdout.count("--- life ") > 2


def executors(space):
    return pods(space, "spark-role=executor")


def test_executors_in_pods_of_their_own_one_of_which_is_lost(space, spark_image):
    for manifest in ACCOUNT:
        kubectl("create", "-f", "-", f"--namespace={space}", stdin=json.dumps(manifest))
    ardea("submit", "kubernetes", f"{SPARKED}:Spread", "--image", spark_image, "--wait-secs", "240", space=space)
    driver = pod_of(space, DRIVER)
    eventually(
        lambda: progress(space, "Spread") == (ROWS // 2, 4, 2),
        180,
        lambda: f"half is done: {progress(space, 'Spread')}",
    )
    [executor] = executors(space)
    assert executor["spec"]["containers"][0]["image"] == driver["spec"]["containers"][0]["image"]
    assert [owner["uid"] for owner in executor["metadata"]["ownerReferences"]] == [driver["metadata"]["uid"]]
    kubectl("delete", "pod", executor["metadata"]["name"], f"--namespace={space}", "--grace-period=0", "--force")
    [second] = eventually(lambda: [pod for pod in executors(space) if running(pod)], 120, "Spark starts another")
    assert second["metadata"]["name"] != executor["metadata"]["name"]
    kubectl("exec", second["metadata"]["name"], f"--namespace={space}", "--", "touch", "/tmp/go")
    eventually(lambda: described("Spread", space)["state"] == "SUCCEEDED", 150, "it ends")
    told = ardea("logs", "Spread", "arrived", space=space).stdout
    assert f"arrived: {ROWS} numbers, sum {ROWS * (ROWS - 1) // 2}" in told
    assert not executors(space)


def running(pod):
    return pod["status"]["phase"] == "Running"
