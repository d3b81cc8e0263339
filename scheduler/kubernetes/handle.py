"""One topology of a namespace, for all verbs."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator

import msgspec

from ardea.errors import ClusterError, Unreachable, UsageError
from ardea.plan.definition import Definition
from ardea.scheduler.control import ControlPort, Status
from ardea.scheduler.kubernetes import layout, names
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.describe import pod_rows, process_rows
from ardea.scheduler.kubernetes.evidence import evidence
from ardea.scheduler.kubernetes.kept import listed
from ardea.scheduler.kubernetes.logs import PodLogs
from ardea.scheduler.kubernetes.restart import Restart
from ardea.scheduler.kubernetes.submission import Options
from ardea.scheduler.kubernetes.topologies import Found, find, health_of, pods_of
from ardea.scheduler.kubernetes.update import PodUpdate, Preparation
from ardea.scheduler.kubernetes.waiting import refusals
from ardea.scheduler.kubernetes.ways import Ways, require_programs, way_to
from ardea.scheduler.next_definition import Change
from ardea.scheduler.schedulers import Description, Evidence, Handle
from ardea.snapshots.kept import Kept, Listing
from ardea.state.records import RunState, SchedulerLocation
from ardea.state.topologies import TopologyStatus

_SIGNAL_CHILDREN = """
import json, os, signal, sys
for process in json.load(open(sys.argv[1]))["processes"].values():
    if process["pid"]:
        os.kill(process["pid"], signal.SIGUSR1)
"""


def _as_told(topology: TopologyStatus, status: Status | None) -> TopologyStatus:
    """In the state of which its master says that it is; its objects say so with the keeper's next look."""
    told = None if status is None else RunState(status.state)
    if told is None or told.final or topology.execution is None:
        return topology
    return dataclasses.replace(topology, execution=msgspec.structs.replace(topology.execution, state=told))


class KubernetesHandle(Handle):
    """Its objects, and what its master says."""

    def __init__(self, cluster: Cluster, found: Found, code: Options, ways: Ways) -> None:
        """``code``: how an update brings it."""
        self._cluster, self._found, self._code, self._ways = cluster, found, code, ways
        self.topology = found.topology
        self.options = f" -n {cluster.namespace}"

    def look(self) -> TopologyStatus:
        """See :class:`Handle`."""
        return find(self._cluster, self.id).topology

    def describe(self) -> Description:
        """See :class:`Handle`; without a master, what its objects say."""
        pods = pods_of(self._cluster, self.id)
        jobs = self._cluster.list("Job", names.of_topology(self.id))
        status, silence = self.master_says()
        lease = self._cluster.find("Lease", self._found.root["metadata"]["name"])
        return Description(
            health=health_of(self._cluster, self._found, lease, self._cluster.now(), acts=status is not None),
            topology=_as_told(self.topology, status),
            status=status,
            silence=silence,
            kept_by=SchedulerLocation(scheduler="kubernetes", host=self._cluster.namespace, pid=0),
            processes=process_rows(self._found.inputs, pods, status.supervised if status is not None else ()),
            pods=pod_rows(pods, jobs, refusals(self._cluster, jobs, pods)),
        )

    def definition(self) -> Definition:
        """See :class:`Handle`."""
        return self._found.inputs.definition

    def committed(self) -> Kept | None:
        """See :class:`Handle`: its master knows it."""
        return self.kept(self.id).committed

    def kept(self, name: str) -> Listing:
        """That, and savepoints of topologies of that name, or of that id; nothing of a topology that does not run."""
        if not self.topology.running:
            return Listing("")
        with self.control() as control:
            return listed(control, name)

    @contextlib.contextmanager
    def control(self) -> Iterator[ControlPort]:
        """See :class:`Handle`."""
        self.require_running()
        record = self.topology.record
        if record is not None and (why := record.differs):
            raise Unreachable(
                f"{why}: its masters cannot be asked by this version",
                hint=f"use the version that submitted it, or `ardea kill {self.topology.name}{self.options}`",
            )
        with self._ways.to(self._cluster, self._found) as way:
            yield way

    def dump(self, task: str) -> None:
        """See :class:`Handle`: SIGUSR1 makes the process do so."""
        require_programs(self._cluster, self._found, "debug")
        (source,) = PodLogs(self._cluster, self._found).sources(task)
        status = layout.process_folder(self.id, source.number, source.container) / "status.json"
        code, said = self._cluster.execute(
            source.pod, source.container, ["python", "-P", "-c", _SIGNAL_CHILDREN, str(status)]
        )
        if code != 0:
            raise ClusterError(f"{task}: no signal could be sent to its process (exit {code}): {said}")

    def evidence(self) -> Iterator[Evidence]:
        """See :class:`Handle`."""
        return evidence(self._cluster, self._found)

    def restart(self, container: int | None, patience: float) -> list[int]:
        """See :class:`Handle`."""
        self.require_running()
        self.require_version("restart")
        require_programs(self._cluster, self._found, "restart")
        with self.control() as control:
            work = Restart(self._cluster, self._found, control)
            chosen = work.containers() if container is None else [container]
            work.restart(chosen, patience)
        return chosen

    def update(self, change: Change, target: str | None) -> PodUpdate:
        """See :class:`Handle`."""
        self.require_running()
        self.require_version("update")
        require_programs(self._cluster, self._found, "update")  # it loads the topology's code, beside others' keys
        if target is None and (self._code.path_in_image or self._code.include):
            raise UsageError("--path-in-image and --include are about a FILE, which is not given; nothing was changed")
        port = way_to(self._cluster, self._found)
        try:
            wanted = Preparation(self._cluster, self._found, port).wanted(change, target, self._code)
        except BaseException:
            port.close()
            raise
        return PodUpdate(self._cluster, port, wanted)
