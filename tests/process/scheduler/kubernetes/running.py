"""Topologies on a real cluster, in a namespace that the chart was installed in."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tests.machine import patient
from tests.process.scheduler.kubernetes.releases import CommandError, evict, kubectl, read
from tests.process.waiting import eventually
from tests.sizes import size

HERE = Path(__file__).parent
TOPOLOGIES = HERE / "topologies"
COUNTED = TOPOLOGIES / "counted.py"
ROUNDS = size(1, 10)
"""How often each fault strikes a topology."""
WHOLE_WITHIN = 90.0
"""Seconds in which a topology has to be whole again on a quick machine, whatever was lost."""
SMALL = tuple(
    f"topology.config.{key.replace('.', chr(92) + '.')}={value}"
    for key, value in {
        "heron.resources.instance.cpu": 0.02,
        "heron.resources.instance.ram": "200MiB",
        "heron.resources.instance.disk": "128MiB",
        "topology.container.cpu.padding": 0.1,
        "topology.container.disk.padding": "256MiB",
    }.items()
)
"""Settings of the chart with which many topologies fit onto a small machine."""
_SIGNAL = """
import os, signal, sys
for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
    if 1 < process < os.getpid():
        os.kill(process, getattr(signal, "SIG" + sys.argv[1]))
"""
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def ardea(
    *arguments: str | Path, space: str, seconds: float = 300, code: int | None = 0
) -> subprocess.CompletedProcess[str]:
    """A verb, in that namespace; CommandError if it ends with another code than ``code``, unless that is None."""
    command = [sys.executable, "-m", "ardea.cli", *map(str, arguments), "--namespace", space]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    if code is not None and ended.returncode != code:
        raise CommandError(f"exit {ended.returncode}: {command}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}")
    return ended


def chart_defaults(space: str, folder: Path) -> Path:
    """What the chart says to submitters there, in a file."""
    file = folder / "defaults.yaml"
    file.write_text(kubectl("get", "configmap", f"--namespace={space}", "-l", "ardea.dev/role=defaults", "-o", "yaml"))
    return file


def described(name: str, space: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(ardea("describe", name, "-o", "json", space=space).stdout)
    return document


def life(space: str, task: str, name: str = "Counted") -> int:
    """Of the task's process, as its supervisor counts them in the pod's log; 0: none yet."""
    log = ardea("logs", name, task, space=space).stdout
    return max(map(int, re.findall(r"^--- life (\d+) started", log, re.MULTILINE)), default=0)


def pods(space: str, selector: str = "app.kubernetes.io/component in (master,container)") -> list[dict[str, Any]]:
    """Those that nobody has deleted."""
    found = read("pods", f"--namespace={space}", f"--selector={selector}")["items"]
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def pod_of(space: str, container: int) -> dict[str, Any]:
    selector = f"ardea.dev/container={container},app.kubernetes.io/component=container"
    found = eventually(lambda: pods(space, selector), 60, f"container {container} has a pod")
    return max(found, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))


def replaced(space: str, container: int, *, evicted: bool) -> float:
    """When its pod was told to end (``time.monotonic()``); another one is there."""
    gone, since = pod_of(space, container)["metadata"], time.monotonic()
    if evicted:
        evict(space, gone["name"])
    else:
        kubectl("delete", "pod", gone["name"], f"--namespace={space}", "--wait=false")
    eventually(lambda: pod_of(space, container)["metadata"]["uid"] != gone["uid"], WHOLE_WITHIN, "another pod is there")
    return since


def signal_process(space: str, pod: str, container: str, number: str = "KILL") -> None:
    """To the process that PID 1 supervises."""
    kubectl("exec", pod, f"--namespace={space}", "-c", container, "--", "python", "-P", "-c", _SIGNAL, number)


class Counted:
    """The topology of ``topologies/counted.py``, and the collector's pod that keeps what it writes."""

    def __init__(self, space: str) -> None:
        self.space = space
        self._took: list[float] = []

    def ask(self, request: str) -> str:
        """The collector's answer."""
        script = (
            "import socket, sys; f = socket.create_connection(('127.0.0.1', 9000)).makefile('rw'); "
            "f.write(sys.argv[1] + chr(10)); f.flush(); print(f.readline().strip())"
        )
        command = ("exec", "collector", f"--namespace={self.space}", "--", "python", "-P", "-c", script, request)
        return kubectl(*command).strip()

    def seen(self) -> int:
        return int(self.ask("seen"))

    def works(self, since: float | None = None) -> None:
        """New numbers arrive, WHOLE_WITHIN of ``since``."""
        before = self.seen()
        eventually(
            lambda: self.seen() > before + 100,
            WHOLE_WITHIN,
            lambda: f"new numbers arrive: {self.trouble()}",
            since=since,
        )

    def whole(self, since: float | None = None) -> None:
        """Pods are ready, containers have registered, tasks have reported, numbers arrive: WHOLE_WITHIN of ``since``.

        ``since``: ``time.monotonic()`` when something was lost; None: now.
        """
        began = time.monotonic() if since is None else since
        eventually(self._complete, WHOLE_WITHIN, lambda: f"it is whole again: {self.trouble()}", since=began)
        self.works(began)
        took = round(time.monotonic() - began, 1)
        print(f"whole again after {took} s", flush=True)
        self._took.append(took)
        assert took <= patient(WHOLE_WITHIN), self.trouble()

    def _complete(self) -> bool:
        at_work = (pod for pod in pods(self.space) if pod["status"]["phase"] != "Failed")  # its Job has another
        if not all(map(_ready, at_work)):
            return False
        status = described("Counted", self.space)["status"]
        return status is not None and not status["missing_containers"] and not status["silent_tasks"]

    def trouble(self) -> str:
        return kubectl("get", "pods", "-o", "wide", f"--namespace={self.space}")

    def finish(self) -> None:
        """Everything that was read has been written, and the topology has SUCCEEDED."""
        if took := self._took:
            print(f"whole again {len(took)} times, after {min(took)}, {median(took)}, {max(took)} s: min, median, max")
        self.ask("enough")
        eventually(
            lambda: described("Counted", self.space)["state"] == "SUCCEEDED", 180, lambda: f"it ends: {self.trouble()}"
        )
        assert self.ask("missing") == "[]"


def _ready(pod: dict[str, Any]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


@contextmanager
def counted(space: str, image: str, file: Path = COUNTED, *options: str) -> Iterator[Counted]:
    """Submitted with these options, and running under load."""
    with _collector(space, image):
        ardea("submit", "kubernetes", file, "--wait-secs", "240", *options, space=space)
        topology = Counted(space)
        topology.works()
        yield topology


@contextmanager
def _collector(space: str, image: str) -> Iterator[None]:
    where = f"--namespace={space}"
    kubectl("create", "configmap", "collector", f"--from-file={HERE / 'collector.py'}", where)
    container = {
        "name": "collector",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-P", "/collector/collector.py"],
        "volumeMounts": [{"name": "collector", "mountPath": "/collector"}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},  # not to starve beside what asks for more
        "securityContext": RESTRICTED,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "collector", "labels": {"app": "collector"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "nodeName": first_node(),  # the tests of lost nodes take the others
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "collector", "configMap": {"name": "collector"}}],
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "collector"},
        "spec": {"selector": {"app": "collector"}, "ports": [{"port": 9000}]},
    }
    for manifest in (pod, service):
        kubectl("create", "-f", "-", where, stdin=json.dumps(manifest))
    kubectl("wait", "pod/collector", "--for=condition=Ready", "--timeout=120s", where)
    yield


def nodes() -> list[str]:
    return sorted(str(node["metadata"]["name"]) for node in read("nodes")["items"])


def first_node() -> str:
    return nodes()[0]


def pause(seconds: float) -> None:
    """Time that a fault lasts."""
    threading.Event().wait(seconds)
