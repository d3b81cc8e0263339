"""How far a submitted topology is, from its objects alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ardea.errors import ClusterError, TimedOut, Unreachable, Unrecognized
from ardea.scheduler.kubernetes import names, objects
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.decisions import container_statuses, pod_seen
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.state.records import RunState

LOOK_EVERY = 0.5
BORNE_FOR = 60.0
"""Seconds without an answer of the cluster, after which watching a topology ends."""


@dataclass(frozen=True, slots=True)
class PodsProgress:
    """``ready`` of ``pods`` pods are; ``trouble``: what keeps others; ``status``: the master's last word."""

    pods: int
    ready: int
    trouble: str
    failure: str
    status: RootStatus | None

    @property
    def line(self) -> str:
        """For people."""
        waiting = self.trouble or (_waiting(self.status) if self.status else "waiting for the topology master")
        return f"pods {self.ready}/{self.pods} ready" + (f" · {waiting}" if waiting else "")


def progress(
    root: Manifest, jobs: Iterable[Manifest], pods: Iterable[Manifest], refused: Mapping[str, str]
) -> PodsProgress:
    """Pure.  ``failure``: why it can never run, before a master could say so; ``refused``: see :func:`refusals`."""
    jobs, pods = list(jobs), [pod for pod in pods if objects.deleted_at(pod) is None]
    status = objects.status_of(root)
    troubles = [trouble for trouble in map(trouble_of, pods) if trouble]
    troubles += [f"{job} gets no pod: {said}" for job, said in refused.items()]
    failed = [job for job in jobs if _condition(job, "Failed") is not None]
    said = next((seen.permanent for seen in map(pod_seen, pods) if seen.permanent), "")
    failure = ""
    if failed and (status is None or not status.final):
        failure = said or str(_condition(failed[0], "Failed"))
    ready = sum(_ready(pod) for pod in pods)
    return PodsProgress(len(jobs), ready, troubles[0] if troubles else "", failure, status)


def trouble_of(pod: Manifest) -> str:
    """What keeps a pod from running, in one line; empty if nothing does."""
    name = pod["metadata"]["name"]
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{name} cannot be scheduled: {condition.get('message', condition.get('reason', ''))}"
    for container in container_statuses(pod):
        waiting = container.get("state", {}).get("waiting", {})
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            message = waiting.get("message", "")
            return f"{name} {container['name']}: {waiting['reason']}{': ' if message else ''}{message}"
    return ""


def refusals(cluster: Objects, jobs: Iterable[Manifest], pods: Iterable[Manifest]) -> dict[str, str]:
    """What the cluster said when it refused a Job's pod (a quota, Pod Security), by the name of the Job.

    Only Jobs that have no living pod and are to have one are asked for, and only then anything is asked.  What was said
    before a pod of the Job was made, which has died since, is over.
    """
    having: set[str] = set()
    died: dict[str, str] = {}
    for pod in pods:
        if (seen := pod_seen(pod)).over:
            died[seen.job] = max(died.get(seen.job, ""), str(pod["metadata"]["creationTimestamp"]))
        else:
            having.add(seen.job)
    without = {
        job["metadata"]["uid"]: str(job["metadata"]["name"])
        for job in jobs
        if job["metadata"]["name"] not in having and not any(map(partial(_condition, job), ("Complete", "Failed")))
    }
    if not without:
        return {}
    events = [
        (str(event.get("lastTimestamp") or event.get("eventTime")), event)
        for event in cluster.list("Event")
        if event.get("reason") == "FailedCreate"
    ]
    said = {}
    for at, event in sorted(events, key=lambda each: each[0]):
        name = without.get(event["involvedObject"].get("uid"))
        if name is not None and at > died.get(name, ""):
            said[name] = str(event.get("message", ""))
    return said


class Waiter:
    """Waits for one submitted topology."""

    def __init__(
        self,
        cluster: Objects,
        root: Manifest,
        show: Callable[[PodsProgress], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``root`` as it was submitted; ``show`` is called at every look."""
        self._cluster, self._root, self._show = cluster, root, show
        self._clock, self._pause = clock, pause

    def wait(self, patience: float | None, *, ended: bool) -> RootStatus:
        """Returns when it runs, or has ended; with ``ended`` only the latter.  ``patience`` in seconds.

        KILLED where somebody has removed its root.

        Raises:
            ClusterError: it can never run.
            Unreachable, Unrecognized: the cluster has given no answer for a while.
            TimedOut: not yet; it goes on.
        """
        topology, heard = objects.record_of(self._root).id, self._clock()
        deadline = None if patience is None else heard + patience
        while True:
            try:
                seen = self._look(topology)
            except (Unreachable, Unrecognized):
                given_up = heard + BORNE_FOR if deadline is None else min(deadline, heard + BORNE_FOR)
                if self._clock() >= given_up:
                    raise
                self._pause(LOOK_EVERY)
                continue
            heard = self._clock()
            self._show(seen)
            if seen.status is not None and (seen.status.final or (seen.status.came_up and not ended)):
                return seen.status
            if seen.failure:
                raise ClusterError(
                    f"{topology} cannot run: {seen.failure}",
                    hint=f"`ardea kill {topology} -n {self._cluster.namespace}` removes it",
                )
            if deadline is not None and self._clock() >= deadline:
                what = "has not ended" if ended else "does not run"
                raise TimedOut(
                    f"{topology} {what} after {patience:g} s: {seen.line}; it goes on",
                    hint=f"`ardea describe {topology} -n {self._cluster.namespace}` shows how far it is",
                )
            self._pause(LOOK_EVERY)

    def _look(self, topology: str) -> PodsProgress:
        name, uid = self._root["metadata"]["name"], self._root["metadata"]["uid"]
        root = self._cluster.find("ConfigMap", name)
        if root is None or root["metadata"]["uid"] != uid or objects.deleted_at(root) is not None:
            return PodsProgress(0, 0, "", "", RootStatus(state=RunState.KILLED))
        selector = names.of_topology(topology)
        jobs, pods = (self._cluster.list(kind, selector) for kind in ("Job", "Pod"))
        return progress(root, jobs, pods, refusals(self._cluster, jobs, pods))


def _waiting(status: RootStatus) -> str:
    """Who dies again and again, and why; else for whom the topology waits."""
    crashing = [f"{each.who} {each.why}" for each in (status.health.troubles if status.health else ()) if each.crashing]
    return crashing[0] if crashing else status.waiting


def _ready(pod: Manifest) -> bool:
    """A pod that has done its work counts."""
    status: dict[str, Any] = pod.get("status", {})
    if status.get("phase") == "Succeeded":
        return True
    return any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))


def _condition(manifest: Manifest, kind: str) -> str | None:
    for condition in manifest.get("status", {}).get("conditions", ()):
        if condition["type"] == kind and condition["status"] == "True":
            return str(condition.get("message") or condition.get("reason") or kind)
    return None
