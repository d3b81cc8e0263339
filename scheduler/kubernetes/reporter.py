"""What the acting master says of its topology: in the root, by a Lease, in conditions of pods, by events."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ardea.errors import ArdeaError, ClusterError, Conflict, NotFound, Unreachable, Unrecognized
from ardea.health import ProcessRow, Trouble
from ardea.health.processes import trouble
from ardea.scheduler.control import Status, waiting_for
from ardea.scheduler.kubernetes import health, names, objects
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.lease import RENEW_EVERY, lease
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.scheduler.kubernetes.root_object import write_status
from ardea.scheduler.kubernetes.snapshot_events import News, SnapshotEvents
from ardea.scheduler.kubernetes.waiting import refusals
from ardea.state.records import RunState

WRITE_EVERY = 5.0
"""The least seconds between two writes of what only the health has changed, and between two looks at the pods'."""
MOST = 1024
"""Characters of a message that Kubernetes takes."""
log = logging.getLogger("keeper")


class Word(NamedTuple):
    """What a pod's condition says: a reason for programs, and a message for people, empty if it is well."""

    reason: str
    message: str

    @classmethod
    def of(cls, troubles: Iterable[Trouble]) -> Word:
        """What these troubles of its processes come to."""
        found = list(troubles)
        if not found:
            return WELL
        crashing = any(trouble.crashing for trouble in found)
        said = "; ".join(f"{trouble.who} {trouble.why}" for trouble in found)
        return cls("Crashing" if crashing else "Degraded", said[:MOST])

    @property
    def news(self) -> News:
        """As an event."""
        if self.message:
            return News("Warning", self.reason, self.message)
        return News("Normal", "Recovered", "all processes are well again")


WELL = Word("Healthy", "")


class _Rights:
    """Without the right to say how it is doing a topology is kept all the same: its chart may be an older one."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    @contextlib.contextmanager
    def needed(self) -> Iterator[None]:
        """Passes over a refusal, of which the log tells once.

        Raises:
            Unreachable, Unrecognized: that is none.
        """
        try:
            yield
        except (Unreachable, Unrecognized):
            raise
        except ClusterError as error:
            if error.message not in self._said:
                self._said.add(error.message)
                log.warning("%s; `helm upgrade` of the chart grants what masters need", error.message)


class Reporter:
    """One acting master's; each call does what is due by then."""

    def __init__(self, cluster: Objects, address: str, pod: str, now: Callable[[], datetime]) -> None:
        """``address`` is that of the master's control port, ``pod`` the one that it runs in."""
        self._cluster, self._address, self._pod, self._now = cluster, address, pod, now
        self._written: RootStatus | None = None
        self._refusal = ""
        self._rights = _Rights()
        self._snapshots = SnapshotEvents()
        self._written_at = self._renewed_at = self._conditions_at = datetime.min.replace(tzinfo=UTC)

    def tell(
        self, inputs: ManifestInputs, root: Manifest, status: Status, jobs: list[Manifest], pods: list[Manifest]
    ) -> None:
        """The root, the Lease, and the conditions of the pods say it, also when no master lives any more.

        Raises:
            ArdeaError: the cluster does not answer, or refuses.
        """
        with self._rights.needed():
            for news in self._snapshots.news(status, self._now().timestamp()):
                self._event(news, "v1", "ConfigMap", root, self._now())
        if RunState(status.state).final:
            return  # the process itself has the last word
        refused: dict[int, str] = {}
        with self._rights.needed():
            refused = self._refused(jobs, pods)
        said = RootStatus(
            state=status.state,
            reason=status.reason,
            came_up=status.came_up,
            waiting=waiting_for(status),
            master=self._address,
            health=health.bounded(health.with_pods(status.health, pods, refused, came_up=status.came_up)),
        )
        if self._is_due(said):
            self._write(root, said)
        with self._rights.needed():
            self._renew(inputs, root)
        with self._rights.needed():
            self._tell_pods(status.supervised, jobs, pods)

    def _refused(self, jobs: list[Manifest], pods: list[Manifest]) -> dict[int, str]:
        """Why the cluster makes no pod of a container, by its number."""
        numbers = {job["metadata"]["name"]: int(job["metadata"]["labels"][names.CONTAINER]) for job in jobs}
        return {numbers[job]: why for job, why in refusals(self._cluster, jobs, pods).items()}

    def _is_due(self, news: RootStatus) -> bool:
        if self._written is None or news == self._written:
            return news != self._written
        same = [getattr(news, field) == getattr(self._written, field) for field in ("state", "came_up", "waiting")]
        return not all(same) or _passed(self._written_at, self._now(), WRITE_EVERY)

    def _write(self, root: Manifest, said: RootStatus) -> None:
        """What the cluster does not take is no reason to leave the topology alone.

        Raises:
            Conflict, NotFound: the root is gone.
            Unrecognized: the account of the pod is.
        """
        try:
            write_status(self._cluster, root, said)
        except (Conflict, NotFound, Unrecognized):
            raise
        except ArdeaError as error:
            if error.message != self._refusal:
                log.warning("%s; it is tried again", error.message)
            self._refusal = error.message
        else:
            self._written, self._written_at, self._refusal = said, self._now(), ""

    def _renew(self, inputs: ManifestInputs, root: Manifest) -> None:
        now = self._now()
        if _passed(self._renewed_at, now, RENEW_EVERY):
            self._cluster.apply(lease(inputs, root, self._pod, now))
            self._renewed_at = now

    def _tell_pods(self, rows: list[ProcessRow], jobs: list[Manifest], pods: list[Manifest]) -> None:
        """A master's pod speaks for itself."""
        now = self._now()
        if not _passed(self._conditions_at, now, WRITE_EVERY):
            return
        self._conditions_at = now
        for pod in pods:
            labels = pod["metadata"]["labels"]
            if labels.get(names.COMPONENT) != names.WORKER or objects.deleted_at(pod) is not None:
                continue
            own = [row for row in rows if row.container == int(labels[names.CONTAINER])]
            word = Word.of(each for row in own if (each := trouble(row)) is not None)
            with contextlib.suppress(Conflict, NotFound):  # it has gone meanwhile
                if set_condition(self._cluster, pod, word, now):
                    for job in jobs:
                        if job["metadata"]["name"] == labels.get(names.JOB):
                            self._event(word.news, "batch/v1", "Job", job, now)

    def _event(self, news: News, version: str, kind: str, about: Manifest, now: datetime) -> None:
        """For ``kubectl describe`` of that object."""
        metadata, moment = about["metadata"], _second(now)
        self._cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"generateName": f"{metadata['name']}-"},
                "involvedObject": {
                    "apiVersion": version,
                    "kind": kind,
                    "name": metadata["name"],
                    "namespace": self._cluster.namespace,
                    "uid": metadata["uid"],
                },
                "type": news.kind,
                "reason": news.reason,
                "message": news.message[:MOST],
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
        self._rights = _Rights()
        self._told = ""

    def look(self) -> None:
        """Asks for the pod, which nobody but its own account may.

        Raises:
            ArdeaError: the cluster does not answer, or does not know who asks.
        """
        with self._rights.needed():
            self._cluster.find("Pod", self.name)

    def tell(self, why: str) -> None:
        """Says that the pod is well, or ``why`` it is cut off from the topology's state.

        Raises:
            ArdeaError: the cluster does not answer.
        """
        word = Word("CutOff", why[:MOST]) if why else WELL
        if word.reason == self._told:
            return
        with self._rights.needed(), contextlib.suppress(Conflict, NotFound):  # it is being deleted
            if (pod := self._cluster.find("Pod", self.name)) is not None:
                set_condition(self._cluster, pod, word, self._now())
        self._told = word.reason


def set_condition(cluster: Objects, pod: Manifest, word: Word, now: datetime) -> bool:
    """Has a pod say how it is doing; returns whether that is news, which the first good word is not.

    Raises:
        Conflict, NotFound: it has gone meanwhile.
    """
    status = "False" if word.message else "True"
    former = next((c for c in pod.get("status", {}).get("conditions", ()) if c["type"] == health.CONDITION), None)
    if former is not None and (former["status"], former.get("message", "")) == (status, word.message):
        return False
    changed = former is not None and former["status"] != status
    condition: dict[str, Any] = {
        "type": health.CONDITION,
        "status": status,
        "reason": word.reason,
        "message": word.message,
        "lastTransitionTime": _second(now) if changed or former is None else former["lastTransitionTime"],
    }
    change = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": [condition]}}
    cluster.patch("Pod", pod["metadata"]["name"], change, "status")
    return changed or (former is None and bool(word.message))


def _passed(since: datetime, now: datetime, seconds: float) -> bool:
    return (now - since).total_seconds() >= seconds


def _second(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
