"""The processes of a topology as its pods tell of them: readable without a master.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from ardea.health import ProcessRow
from ardea.plan.names import MASTER_CONTAINER
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Manifest
from ardea.scheduler.kubernetes.decisions import container_statuses
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.waiting import trouble_of

_LOOPS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull")


def process_rows(
    inputs: ManifestInputs, pods: Iterable[Manifest], supervised: Iterable[ProcessRow] = ()
) -> list[ProcessRow]:
    """One row a container of a pod; tasks have their own names.

    ``supervised`` is what the supervisors say, as the master has heard it: of a process in a container that runs they
    know more than kubelet does.  Masters' pods are not told apart there.
    """
    rows = []
    known = {(row.container, row.name): row for row in supervised if row.container != MASTER_CONTAINER}
    tasks = {
        plan.number: {
            called: next(i.name for i in plan.instances if i.task == task)
            for task, called in names.instance_names(plan.instances).items()
        }
        for plan in inputs.containers
    }
    for pod in pods:
        number = int(pod["metadata"]["labels"][names.CONTAINER])
        for container in container_statuses(pod):
            if container["name"] != layout.PREPARE:
                name = tasks.get(number, {}).get(container["name"], container["name"])
                row = _row(number, name, container)
                rows.append(_both(row, known.get((number, name))))
    return rows


def pod_rows(pods: Iterable[Manifest], jobs: Iterable[Manifest], refused: Mapping[str, str]) -> list[dict[str, Any]]:
    """Where each container's pod is, and what keeps it from running; and those of ``jobs`` whose pod is ``refused``."""
    nowhere = {"pod": None, "node": None, "phase": None}
    missing = [
        {"container": int(job["metadata"]["labels"][names.CONTAINER]), **nowhere, "trouble": said}
        for job in jobs
        if (said := refused.get(job["metadata"]["name"]))
    ]
    return missing + [
        {
            "container": int(pod["metadata"]["labels"][names.CONTAINER]),
            "pod": pod["metadata"]["name"],
            "node": pod["spec"].get("nodeName"),
            "phase": pod.get("status", {}).get("phase"),
            "trouble": trouble_of(pod) or None,
        }
        for pod in pods
    ]


def _both(pod: ProcessRow, supervisor: ProcessRow | None) -> ProcessRow:
    """The supervisor's word, as long as its container runs; how that ended itself only kubelet knows."""
    if supervisor is None or pod.state != "running":
        return pod
    if pod.last_end is None or (supervisor.last_end or 0.0) >= pod.last_end:
        return supervisor
    return msgspec.structs.replace(supervisor, last_end=pod.last_end, last_reason=pod.last_reason)


def _row(number: int, name: str, container: dict[str, Any]) -> ProcessRow:
    ((state, detail),) = (container.get("state") or {"waiting": {}}).items()
    former = (container.get("lastState") or {}).get("terminated")
    ended = detail if state == "terminated" else former
    ended_at = ended.get("finishedAt") if ended else None  # None: its node has lost it (ContainerStatusUnknown)
    restarts = int(container.get("restartCount", 0))
    looping = detail.get("reason") in _LOOPS
    return ProcessRow(
        container=number,
        name=name,
        state=state if state != "terminated" else "finished" if detail["exitCode"] == 0 else "failed",
        pid=None,
        life=restarts + 1,
        restarts=restarts,
        last_end=datetime.fromisoformat(ended_at).timestamp() if ended_at else None,
        last_reason=why_ended(ended) if ended else "",
        crash_loop=f"{detail['reason']}: {detail.get('message', '')}" if looping else "",
    )


def why_ended(ended: dict[str, Any]) -> str:
    """How a container ended, of its ``terminated``."""
    said = (ended.get("message") or "").strip().splitlines()
    how = "killed for its memory" if ended.get("reason") == "OOMKilled" else f"exit {ended['exitCode']}"
    return f"{how} ({said[-1]})" if said else how
