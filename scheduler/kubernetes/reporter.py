"""What the acting master says of its topology: in the root, by a Lease, in conditions of pods, by events."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from ardea.errors import ClusterError, Conflict, NotFound
from ardea.health import ProcessRow
from ardea.health.processes import trouble
from ardea.scheduler.control import Status, waiting_for
from ardea.scheduler.kubernetes import health, names, objects
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.lease import RENEW_EVERY, lease
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.root_object import write_status
from ardea.scheduler.kubernetes.waiting import refusals
from ardea.state.records import RunState

WRITE_EVERY = 5.0
"""The least seconds between two writes of what only the health has changed, and between two looks at the pods'."""
log = logging.getLogger("keeper")


class Reporter:
    """One acting master's; each call does what is due by then."""

    def __init__(self, cluster: Objects, address: str, pod: str, now: Callable[[], datetime]) -> None:
        """``address`` is that of the master's control port, ``pod`` the one that it runs in."""
        self._cluster, self._address, self._pod, self._now = cluster, address, pod, now
        self._written: RootStatus | None = None
        self._said: set[str] = set()
        self._written_at = self._renewed_at = self._conditions_at = datetime.min.replace(tzinfo=UTC)

    def tell(
        self, inputs: ManifestInputs, root: Manifest, status: Status, jobs: list[Manifest], pods: list[Manifest]
    ) -> None:
        """The root, the Lease, and the conditions of the pods say it, also when no master lives any more.

        Raises:
            ArdeaError: the cluster does not answer, or refuses.
        """
        if RunState(status.state).final:
            return  # the process itself has the last word
        with self._trying():
            self._renew(inputs, root)
        before = objects.status_of(root)
        came_up = status.came_up or status.complete or (before is not None and before.came_up)
        numbers = {job["metadata"]["name"]: int(job["metadata"]["labels"][names.CONTAINER]) for job in jobs}
        refused = {numbers[job]: why for job, why in refusals(self._cluster, jobs, pods).items()}
        news = RootStatus(
            state=status.state,
            reason=status.reason,
            came_up=came_up,
            waiting=waiting_for(status),
            master=self._address,
            health=health.with_pods(status.health, pods, refused, came_up=came_up),
        )
        if self._is_due(news):
            write_status(self._cluster, root, news)
            self._written, self._written_at = news, self._now()
        with self._trying():
            self._tell_pods(status.supervised, jobs, pods)

    @contextlib.contextmanager
    def _trying(self) -> Iterator[None]:
        """Without the right to say something the topology is kept all the same."""
        try:
            yield
        except ClusterError as error:
            if error.message not in self._said:
                self._said.add(error.message)
                log.warning("%s; `helm upgrade` of the chart grants what masters need", error.message)

    def _is_due(self, news: RootStatus) -> bool:
        if self._written is None or news == self._written:
            return news != self._written
        same = [getattr(news, field) == getattr(self._written, field) for field in ("state", "came_up", "waiting")]
        return not all(same) or _passed(self._written_at, self._now(), WRITE_EVERY)

    def _renew(self, inputs: ManifestInputs, root: Manifest) -> None:
        now = self._now()
        if _passed(self._renewed_at, now, RENEW_EVERY):
            self._cluster.apply(lease(inputs, root, self._pod, now))
            self._renewed_at = now

    def _tell_pods(self, rows: Iterable[ProcessRow], jobs: list[Manifest], pods: list[Manifest]) -> None:
        """A master's pod speaks for itself."""
        now = self._now()
        if not _passed(self._conditions_at, now, WRITE_EVERY):
            return
        self._conditions_at = now
        rows = list(rows)
        for pod in pods:
            labels = pod["metadata"]["labels"]
            if labels.get(names.COMPONENT) != names.WORKER or objects.deleted_at(pod) is not None:
                continue
            own = [row for row in rows if row.container == int(labels[names.CONTAINER])]
            why = "; ".join(f"{each.who} {each.why}" for row in own if (each := trouble(row)) is not None)
            with contextlib.suppress(Conflict, NotFound):  # it has gone meanwhile
                if set_condition(self._cluster, pod, why, now):
                    job = next((job for job in jobs if job["metadata"]["name"] == labels.get(names.JOB)), None)
                    self._event(job or pod, why, now)

    def _event(self, about: Manifest, why: str, now: datetime) -> None:
        """For ``kubectl describe``."""
        metadata, moment = about["metadata"], _second(now)
        self._cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{metadata['name']}-"},
                "involvedObject": {
                    "apiVersion": about.get("apiVersion", "batch/v1"),
                    "kind": about.get("kind", "Job"),
                    "name": metadata["name"],
                    "namespace": self._cluster.namespace,
                    "uid": metadata["uid"],
                },
                "type": "Warning" if why else "Normal",
                "reason": "Crashing" if why else "Recovered",
                "message": why[:1024] or "no process dies again and again any more",
                "source": {"component": "ardea"},
                "firstTimestamp": moment,
                "lastTimestamp": moment,
                "count": 1,
            }
        )


class OwnPod:
    """The pod that this process runs in; its word is written when it changes."""

    def __init__(self, cluster: Objects, name: str, now: Callable[[], datetime]) -> None:
        self._cluster, self.name, self._now = cluster, name, now
        self._told: bool | None = None

    def tell(self, why: str) -> None:
        """Says that the pod is well, or ``why`` it is not.

        Raises:
            ArdeaError: the cluster does not answer, or refuses.
        """
        if self._told == (not why):
            return
        if (pod := self._cluster.find("Pod", self.name)) is not None:
            set_condition(self._cluster, pod, why, self._now())
        self._told = not why


def set_condition(cluster: Objects, pod: Manifest, why: str, now: datetime) -> bool:
    """Has a pod say how it is doing, ``why`` not well; whether its word has changed, which the first good one does not.

    Raises:
        Conflict, NotFound: it has gone meanwhile.
    """
    status, message = "False" if why else "True", why[:1024]
    former = next((c for c in pod.get("status", {}).get("conditions", ()) if c["type"] == health.CONDITION), None)
    if former is not None and (former["status"], former.get("message", "")) == (status, message):
        return False
    changed = former is not None and former["status"] != status
    condition: dict[str, Any] = {
        "type": health.CONDITION,
        "status": status,
        "reason": "Troubled" if why else "Healthy",
        "message": message,
        "lastTransitionTime": _second(now) if changed or former is None else former["lastTransitionTime"],
    }
    change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": [condition]}}
    cluster.patch("Pod", pod["metadata"]["name"], change, "status")
    return changed or (former is None and bool(why))


def _passed(since: datetime, now: datetime, seconds: float) -> bool:
    return (now - since).total_seconds() >= seconds


def _second(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
