"""What the acting master does for the pods of its topology.  Pure: what is seen in, what to do out.

Kubernetes restarts containers in place and replaces lost pods by itself.  Left to the keeper is what it does too late
or not at all: the Job controller's delay doubles with every lost pod, a pod stays on a node that is gone, a process
that cannot go on is started for ever, and plans change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ardea.errors import ExitCode
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.objects import deleted_at

FIRST_DELAY = 10.0
"""Seconds that the Job controller waits after the first lost pod; then twice as long each time."""
LONGEST_DELAY = 20.0
STUCK_AFTER = 10.0
"""Seconds beyond its grace after which nobody will end a pod that is being deleted any more."""


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A Job.  ``failed``: pods that it has lost; ``finished``: it is Complete or Failed.

    ``content``: what its pod was made for; nothing for a master's.
    """

    name: str
    uid: str
    failed: int
    finished: bool
    deleting: bool
    content: str = ""


@dataclass(frozen=True, slots=True)
class PodSeen:
    """A pod.  ``permanent``: what the process said that ended with exit code 78, if one did."""

    name: str
    uid: str
    job: str
    over: bool
    gone_by: datetime | None
    permanent: str


@dataclass(frozen=True, slots=True)
class CreateJob:
    """The Job of this name, from the manifest inputs."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """This very Job; a Job of its name that is wanted is created in the next round."""

    name: str
    uid: str
    why: str


@dataclass(frozen=True, slots=True)
class ForgetPod:
    """This very pod, without waiting for its node."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The topology, for a process cannot go on."""

    reason: str


Action = CreateJob | DeleteJob | ForgetPod | Fail


def decide(
    wanted: Mapping[str, str],
    jobs: Iterable[JobSeen],
    pods: Iterable[PodSeen],
    now: datetime,
    *,
    over: bool,
    updating: bool = False,
) -> list[Action]:
    """What is to be done now; the same again does no harm.

    Args:
        wanted: the names of the Jobs that there shall be, those of masters included, with their content.
        jobs: those that there are.
        pods: theirs.
        now: with a time zone.
        over: the topology has its final state.
        updating: a process that cannot go on is no end: the plan that brought it is put back.
    """
    pods = tuple(pods)
    stuck = [p for p in pods if p.gone_by is not None and (now - p.gone_by).total_seconds() > STUCK_AFTER]
    actions: list[Action] = [ForgetPod(pod.name, pod.uid) for pod in stuck]
    if over:
        return actions
    there = {job.name: job for job in jobs}
    if not updating:
        # What an update that was put back has left is about to go, and says nothing about the plan.
        stay = {job.name for job in there.values() if job.name in wanted and job.content == wanted[job.name]}
        dead = [pod for pod in pods if pod.permanent and pod.gone_by is None and pod.job in stay]
        if dead:  # its Job may have ended by now, and stays, with the log
            return [*actions, Fail(f"{dead[0].name} cannot go on: {dead[0].permanent}")]
    running = {pod.job for pod in pods if not pod.over and pod.gone_by is None}
    for name, job in there.items():
        if not job.deleting and (why := _fault(job, wanted, running)):
            actions.append(DeleteJob(name, job.uid, why))
    return actions + [CreateJob(name) for name in sorted(wanted) if name not in there]


def _fault(job: JobSeen, wanted: Mapping[str, str], running: Collection[str]) -> str:
    """Why this Job is to go; empty if it stays."""
    if job.name not in wanted:
        return "the plan has no such container any more"
    if job.content != wanted[job.name]:
        return "the plan has other tasks, or other code, for it"
    if job.finished:
        return "it has ended before its topology"
    delay = FIRST_DELAY * 2 ** (job.failed - 1) if job.failed else 0.0
    if job.name not in running and delay > LONGEST_DELAY:
        return f"it has lost {job.failed} pods and would wait {min(delay, 600):.0f} s for the next"
    return ""


def job_seen(manifest: dict[str, Any]) -> JobSeen:
    """A Job as the cluster describes it."""
    status, metadata = manifest.get("status", {}), manifest["metadata"]
    conditions = {c["type"] for c in status.get("conditions", ()) if c["status"] == "True"}
    return JobSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        failed=int(status.get("failed", 0)),
        finished=bool(conditions & {"Complete", "Failed"}),
        deleting="deletionTimestamp" in metadata,
        content=content_of(manifest),
    )


def content_of(job: dict[str, Any]) -> str:
    """What the pod of a Job is for; nothing for a master's."""
    return str((job["metadata"].get("annotations") or {}).get(names.CONTENT, ""))


def pod_seen(manifest: dict[str, Any]) -> PodSeen:
    """A pod as the cluster describes it."""
    status, metadata = manifest.get("status", {}), manifest["metadata"]
    return PodSeen(
        name=metadata["name"],
        uid=metadata["uid"],
        job=metadata.get("labels", {}).get(names.JOB, ""),
        over=status.get("phase") in ("Succeeded", "Failed"),
        gone_by=deleted_at(manifest),
        permanent=next((why for why in map(_permanent, _own_statuses(manifest)) if why), ""),
    )


def container_statuses(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Of all containers of a pod, in the order of their start."""
    status = manifest.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def _own_statuses(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Without those of init containers that somebody has added: they mean what they like by their exit codes."""
    status = manifest.get("status", {})
    own = (layout.PREPARE, *layout.SIDECARS)
    init = [each for each in status.get("initContainerStatuses", ()) if each["name"] in own]
    return [*init, *status.get("containerStatuses", ())]


def _permanent(container: dict[str, Any]) -> str:
    for state in (container.get("state", {}), container.get("lastState", {})):
        ended = state.get("terminated")
        if ended and ended["exitCode"] == ExitCode.PERMANENT:
            said = ended.get("message", "").strip() or "exit code 78"
            return f"{container['name']}: {said.splitlines()[-1]}"
    return ""
