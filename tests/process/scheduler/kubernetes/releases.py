"""Namespaces of a real cluster, and the chart installed in them; whatever cluster KUBECONFIG names will do."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
CHART = ROOT / "helm"
RELEASE = "ardea"
needs_cluster = pytest.mark.skipif(
    not os.environ.get("KUBECONFIG"), reason="KUBECONFIG is unset: there is no cluster to test on (kind will do)"
)


class CommandError(Exception):
    """kubectl or helm ended with an error; the text is what it said on stderr."""


def run(command: list[str | Path], stdin: str | None = None, seconds: float = 300) -> subprocess.CompletedProcess[str]:
    """Runs to the end; CommandError unless the exit code is 0."""
    ended = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=seconds)
    if ended.returncode:
        raise CommandError(f"{' '.join(map(str, command))}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended


def kubectl(*arguments: str, stdin: str | None = None, seconds: float = 300) -> str:
    return run(["kubectl", *arguments], stdin, seconds).stdout


def read(*arguments: str) -> Any:
    """What `kubectl get ARGUMENTS -o json` says."""
    return json.loads(kubectl("get", *arguments, "-o", "json"))


def evict(space: str, pod: str) -> None:
    """What `kubectl drain` does to a pod."""
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": space}}
    path = f"/api/v1/namespaces/{space}/pods/{pod}/eviction"
    kubectl("create", f"--raw={path}", "-f", "-", stdin=json.dumps(eviction))


def helm(*arguments: str | Path, seconds: float = 300) -> str:
    return run(["helm", *arguments], seconds=seconds).stdout


_deleted: set[str] = set()


def remaining() -> set[str]:
    """Namespaces of this run that were deleted and are not gone."""
    there = {namespace["metadata"]["name"] for namespace in read("namespaces")["items"]}
    return _deleted & there


@contextmanager
def namespace() -> Iterator[str]:
    """A fresh one in which Pod Security `restricted` is enforced; deleted afterwards, with all that is in it.

    That takes a while, for which nobody waits before the end of the run: see ``remaining``.
    """
    name = f"ardea-{uuid.uuid4().hex[:8]}"
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    thing = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": levels}}
    kubectl("create", "-f", "-", stdin=json.dumps(thing))
    try:
        yield name
    finally:
        kubectl("delete", "namespace", name, "--wait=false")
        _deleted.add(name)


def install(space: str, *settings: str) -> None:
    """The chart as release `ardea`, ready, with `--set SETTINGS`; it goes with its namespace.

    Unless a setting says so, ZooKeeper's state is not kept, for a cluster for tests may have few volumes, and it serves
    no metrics, for its image there may be of Debian's package.
    """
    usual = ("zookeeper.persistence.enabled=false", "zookeeper.metrics.enabled=false")
    chosen = [f"--set={setting}" for setting in (*usual, *settings)]
    helm("install", RELEASE, CHART, f"--namespace={space}", "--wait", "--timeout=180s", *chosen)


def objects(space: str) -> set[str]:
    """Everything in the namespace that anybody can list, as kind/name; what Kubernetes makes in each is left out."""
    kinds = kubectl("api-resources", "--verbs=list", "--namespaced", "--output=name").split()
    kinds = [kind for kind in kinds if not kind.startswith(("events", "pods.metrics"))]
    found = kubectl("get", ",".join(kinds), f"--namespace={space}", "--output=name", "--ignore-not-found").split()
    return set(found) - {"configmap/kube-root-ca.crt", "serviceaccount/default"}
