"""One topology's root object and state, as its masters see them: from its registration to the last trace."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from ardea.config import Settings
from ardea.errors import ArdeaError, Conflict, NotFound
from ardea.plan.definition import Definition
from ardea.scheduler.kubernetes import names, objects
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.decisions import job_seen
from ardea.scheduler.kubernetes.former import Former, former
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.snapshots.place import place_at, store_at
from ardea.state import Create, Delete, Set, StateManager, Unavailable, Write, open_state, paths, records
from ardea.state.records import ExecutionState, RunState, SchedulerLocation
from ardea.state.topologies import remove

VERDICT = "TopologyFailed"
"""The type of the condition that says in the masters' Jobs why the topology has failed."""
JOBS_END_WITHIN = 30.0
"""Seconds that containers have to hear of the end, beside the grace of their sidecars; those on lost nodes never do."""
LOOK_EVERY = 0.5
LONGEST_TTL = (1 << 31) - 1
"""Seconds that a Job can be told to stay."""
log = logging.getLogger("keeper")


class RootObject:
    """Where one topology is kept."""

    def __init__(
        self,
        cluster: Objects,
        definition: Definition,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._cluster, self._definition = cluster, definition
        self._clock, self._pause, self._now = clock, pause, now
        self._name = names.root(paths.name_of(definition.topology))
        self._joined: SchedulerLocation | None = None

    def root(self) -> Manifest | None:
        """The root object, unless it is another topology's, or going."""
        root = self._cluster.find("ConfigMap", self._name)
        if root is None or objects.deleted_at(root) is not None:
            return None
        return root if objects.record_of(root).id == self._definition.topology else None

    def wanted(self) -> bool:
        """Whether the topology still is to have a master; True if nobody can say."""
        try:
            return self._wanted_root() is not None
        except ArdeaError as error:
            log.warning("%s; taken to be there", error.message)
            return True

    def upheld(self) -> bool:
        """As :meth:`wanted`; and the state manager knows the topology, also one that has lost what it held.

        Raises:
            StateError: what it holds cannot be read.
        """
        try:
            root = self._wanted_root()
        except ArdeaError as error:
            log.warning("%s; taken to be there", error.message)
            return True
        if root is not None:
            with contextlib.suppress(Unavailable):
                self.register(root)
        return root is not None

    def _wanted_root(self) -> Manifest | None:
        root = self.root()
        status = objects.status_of(root) if root is not None else None
        return None if status is not None and status.final else root

    def register(self, root: Manifest) -> None:
        """Makes the topology known to the state manager, whoever of its masters comes first.

        Below a root that was made again, from the same file, it begins anew, once its former pods are gone.
        """
        uid, said = str(root["metadata"]["uid"]), False
        with open_state(self._definition.state) as state:
            while (known := self._location(state)) is None or known.root not in ("", uid):
                match self._former(root):
                    case Former.RUNS if known is not None:
                        break
                    case Former.ENDS:
                        if not said:
                            log.info("pods of its former root still run: it begins when they are gone")
                            said = True
                        self._pause(LOOK_EVERY)
                    case _:
                        with contextlib.suppress(Conflict, NotFound):  # another master was first
                            state.transaction(self._beginning(state, root))
            self._joined = known

    def _former(self, root: Manifest) -> Former:
        selector = names.of_topology(self._definition.topology)
        jobs, pods = (self._cluster.list(kind, selector) for kind in ("Job", "Pod"))
        return former(root, jobs, pods, self._now())

    def _beginning(self, state: StateManager, root: Manifest) -> list[Write]:
        """What a topology begins with, in place of what there is; the term goes on, so that former masters stay out.

        The plan is the root's: a master's pod has that of its own beginning, and updates may have followed.
        """
        topology, plan = self._definition.topology, paths.physical_plan(self._definition.topology)
        location = SchedulerLocation(
            scheduler="kubernetes", host=self._cluster.namespace, pid=0, root=root["metadata"]["uid"]
        )
        first = {
            paths.topology(topology): objects.record_of(root),
            paths.execution_state(topology): ExecutionState.first(active=self._definition.active),
            paths.scheduler(topology): location,
        }
        over = (plan, paths.former_plan(topology), paths.incarnations(topology))
        versions = {path: _version(state, path) for path in (*first, *over)}
        writes: list[Write] = [Delete(path, versions[path]) for path in over if versions[path]]
        for path, record in first.items():
            data = records.encode(record)
            writes.append(Set(path, data, versions[path]) if versions[path] else Create(path, data))
        if not versions[plan]:
            definition = ManifestInputs.read(root).definition
            writes.append(Create(plan, definition.packed(), definition.epoch))
        return writes

    def conclude(self) -> RootStatus | None:
        """The final state: told where people look for it, then forgotten by the state manager.

        None: there is none yet.  Can be repeated, also by another master.
        """
        root = self.root()
        with open_state(self._definition.state) as state:
            if root is None:
                remove_jobs(self._cluster, self._definition.topology, lambda: self.root() is None)
                self._forget(state)
                return RootStatus(state=RunState.KILLED, removed=True)
            status = objects.status_of(root)
            if status is None or not status.final:
                execution = self._execution(state)
                if execution is None or not execution.state.final:
                    return None
                status = RootStatus(state=execution.state, reason=execution.reason, came_up=True)
                self._tell(root, status)
            if status.state == RunState.FAILED:
                self._condition(status.reason)
            settings = ManifestInputs.read(root).settings
            if not status.removed:
                if objects.kill_of(root) is None or settings.remembers:
                    self._end_jobs(JOBS_END_WITHIN + settings.kubernetes_grace)
                left = self._forget(state, snapshots=status.state != RunState.FAILED)
                status = msgspec.structs.replace(status, removed=True, snapshots=left)
                self._tell(root, status)
            if settings.kubernetes_ttl is not None:
                self._expire(root, settings.kubernetes_ttl)
        return status

    def _tell(self, root: Manifest, status: RootStatus) -> None:
        """The name may be another topology's by now: one that has ended makes room at once."""
        with contextlib.suppress(Conflict, NotFound):
            write_status(self._cluster, root, status)

    def _location(self, state: StateManager) -> SchedulerLocation | None:
        """Who has registered the topology."""
        path = paths.scheduler(self._definition.topology)
        with contextlib.suppress(NotFound):
            return records.decode(state.get(path).data, SchedulerLocation, path)
        return None

    def _execution(self, state: StateManager) -> ExecutionState | None:
        path = paths.execution_state(self._definition.topology)
        with contextlib.suppress(NotFound):
            return records.decode(state.get(path).data, ExecutionState, path)
        return None

    def _condition(self, reason: str) -> None:
        """Kubernetes' own condition says no more than the exit code."""
        condition = {
            "type": VERDICT,
            "status": "True",
            "reason": "Failed",
            "message": reason[:1024],
            "lastTransitionTime": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        }
        for job in self._cluster.list("Job", names.of_topology(self._definition.topology, names.MASTER)):
            change = {"metadata": {"uid": job["metadata"]["uid"]}, "status": {"conditions": [condition]}}
            try:
                self._cluster.patch("Job", job["metadata"]["name"], change, "status")
            except ArdeaError as error:
                log.warning("%s; the reason stands in the root and in the pod", error.message)

    def _expire(self, root: Manifest, ttl: float) -> None:
        """Lets Kubernetes remove the topology later, when no process of it is there any more.

        The masters' Jobs go some time after they have ended, then the root, which nobody but them owns, and then all
        that the root owns.  Not before the end: a Job may have to be made anew, and would take the root along.
        """
        stay = {"ttlSecondsAfterFinished": min(math.ceil(ttl), LONGEST_TTL)}
        jobs = self._cluster.list("Job", names.of_topology(self._definition.topology, names.MASTER))
        marks = [{key: job["metadata"][key] for key in ("name", "uid")} for job in jobs]
        owners = [{"apiVersion": "batch/v1", "kind": "Job", **mark} for mark in marks]
        owned = {"metadata": {"uid": root["metadata"]["uid"], "ownerReferences": owners}}
        changes = [("ConfigMap", self._name, owned)]
        changes += [("Job", mark["name"], {"metadata": {"uid": mark["uid"]}, "spec": stay}) for mark in marks]
        for change in changes:
            try:
                self._cluster.patch(*change)
            except (Conflict, NotFound):
                continue  # it has gone meanwhile
            except ArdeaError as error:
                log.warning("%s; what is left of the topology stays until it is killed", error.message)

    def _end_jobs(self, patience: float) -> None:
        """Waits for the containers; the state must not be gone before they have read the end from it."""
        selector = names.of_topology(self._definition.topology, names.WORKER)
        deadline = self._clock() + patience
        while left := [job for job in map(job_seen, self._cluster.list("Job", selector)) if not job.finished]:
            if self._clock() >= deadline:
                for job in left:
                    log.warning("deletes Job %s: it has not heard of the end", job.name)
                    self._cluster.delete("Job", job.name, uid=job.uid)
                return
            self._pause(LOOK_EVERY)

    def _forget(self, state: StateManager, *, snapshots: bool = True) -> str:
        """But for what belongs to another root by now, which was made of the same file.

        ``snapshots``: these, too, as nobody writes any more; returns where they lie if they stay.
        """
        if self._joined is not None and self._location(state) not in (None, self._joined):
            return ""
        left = self._remove_snapshots() if snapshots else store_of(self._definition)
        with contextlib.suppress(Conflict, NotFound):  # another master does the same
            remove(state, self._definition.topology)
        state.discard()
        return left

    def _remove_snapshots(self) -> str:
        """Returns where they lie if they cannot be removed: they take room, and nothing else."""
        if not (place := store_of(self._definition)):
            return ""
        try:
            place_at(place).remove()
        except Exception as error:  # whatever the client of a foreign store raises
            log.warning("the snapshots in %s stay: %s", place, error)
            return place
        return ""


def store_of(definition: Definition) -> str:
    """The address of a topology's store of snapshots; empty: its mode takes none."""
    settings = Settings.of(definition.shape.config)
    return store_at(settings.snapshot_storage, definition.state, definition.topology) if settings.remembers else ""


def _version(state: StateManager, path: str) -> int:
    """0: there is nothing."""
    with contextlib.suppress(NotFound):
        return state.get(path).version
    return 0


def remove_jobs(cluster: Objects, topology_id: str, rootless: Callable[[], bool]) -> None:
    """Of a topology without a root, which owned them, or did not: then nobody else removes them.

    ``rootless`` is asked after they were looked for: kubectl, which may apply the same file again, makes it first.
    """
    jobs = cluster.list("Job", names.of_topology(topology_id))
    if rootless():
        for job in jobs:
            log.warning("deletes Job %s: %s has no root", job["metadata"]["name"], topology_id)
            cluster.delete("Job", job["metadata"]["name"], uid=job["metadata"]["uid"])


def write_status(cluster: Objects, root: Manifest, status: RootStatus) -> None:
    """Into the annotation of this very root.

    Raises:
        Conflict: another has its name.
        NotFound: it is gone.
    """
    annotations = {objects.STATUS: msgspec.json.encode(status).decode()}
    metadata = {"uid": root["metadata"]["uid"], "annotations": annotations}
    cluster.patch("ConfigMap", root["metadata"]["name"], {"metadata": metadata})
