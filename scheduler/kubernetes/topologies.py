"""The topologies of a namespace, as their root objects tell of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ardea.errors import NotFound, StateError
from ardea.health import Health
from ardea.scheduler.kubernetes import health, names, objects
from ardea.scheduler.kubernetes.client import Manifest, Objects
from ardea.scheduler.kubernetes.damage import reading
from ardea.scheduler.kubernetes.manifest_inputs import ManifestInputs
from ardea.scheduler.kubernetes.objects import RootStatus
from ardea.state.records import ExecutionState, RunState
from ardea.state.topologies import TopologyStatus


@dataclass(frozen=True, slots=True)
class Found:
    """One topology: its root object, and what that says."""

    root: Manifest
    topology: TopologyStatus

    @property
    def id(self) -> str:
        """The topology's."""
        return self.topology.id

    @property
    def inputs(self) -> ManifestInputs:
        """What its objects are made from."""
        return ManifestInputs.read(self.root)


def listing(cluster: Objects) -> list[Found]:
    """All of the namespace, the newest first."""
    found = [Found(root, _status(root)) for root in cluster.list("ConfigMap", names.ROOTS)]
    return sorted(found, key=lambda f: f.root["metadata"]["creationTimestamp"], reverse=True)


def with_health(cluster: Objects, found: Iterable[Found], now: datetime) -> list[TopologyStatus]:
    """The same, each with its health, unless its root cannot be read.

    The objects of one are looked at only where no master speaks for it.
    """
    leases = {lease["metadata"]["name"]: lease for lease in cluster.list("Lease")}
    return [
        each.topology
        if each.topology.problem
        else dataclasses.replace(
            each.topology, health=health_of(cluster, each, leases.get(each.root["metadata"]["name"]), now)
        )
        for each in found
    ]


def health_of(
    cluster: Objects, found: Found, lease: Manifest | None, now: datetime, *, acts: bool = False
) -> Health | None:
    """What the master last said, if one acts; else what the objects say.  None: nobody, or it has ended.

    ``now`` is by the cluster's clock; ``acts``: a master has just answered, whatever its Lease says.
    """
    root = found.root
    if health.is_over(root):
        return None
    lease = lease if lease is not None and health.is_of(lease, root) else None
    status = objects.status_of(root)
    if status is not None and (acts or (lease is not None and health.is_valid(lease, now))):
        return status.health
    selector = names.of_topology(found.id)
    return health.without_master(root, lease, cluster.list("Job", selector), cluster.list("Pod", selector), now)


def find(cluster: Objects, name_or_id: str) -> Found:
    """The topology of that name or id.

    Raises:
        NotFound: there is none.
        StateError: its root cannot be read.
    """
    for found in listing(cluster):
        if name_or_id in (found.id, found.topology.name):
            if found.topology.problem:
                raise found.topology.problem
            return found
    raise NotFound(
        f"no topology is called {name_or_id} in namespace {cluster.namespace}",
        hint=f"`ardea list -n {cluster.namespace}` shows those that there are",
    )


def pods_of(cluster: Objects, topology_id: str, component: str | None = None) -> list[Manifest]:
    """The pods that nobody has deleted, the newest of each Job; by container."""
    pods = [p for p in cluster.list("Pod", names.of_topology(topology_id, component)) if not objects.deleted_at(p)]
    newest: dict[str, Manifest] = {}
    for pod in sorted(pods, key=lambda p: str(p["metadata"]["creationTimestamp"])):
        newest[pod["metadata"]["labels"].get(names.JOB, pod["metadata"]["name"])] = pod
    return sorted(newest.values(), key=lambda p: (int(p["metadata"]["labels"][names.CONTAINER]), p["metadata"]["name"]))


def master_pods(cluster: Objects, topology_id: str) -> list[Manifest]:
    """Those of masters that run."""
    return [
        pod for pod in pods_of(cluster, topology_id, names.MASTER) if pod.get("status", {}).get("phase") == "Running"
    ]


def _status(root: Manifest) -> TopologyStatus:
    """With the problem, if the root cannot be read: it is taken for one that runs, and its labels say whose it is."""
    metadata, record, execution, problem = root["metadata"], None, None, None
    try:
        record = objects.record_of(root)
        with reading(root):
            execution = _execution(objects.status_of(root))
    except StateError as error:
        problem = error
    topology = record.id if record else metadata["labels"].get(names.TOPOLOGY_ID, metadata["name"])
    return TopologyStatus(topology, record, execution, execution is None or not execution.state.final, problem)


def _execution(status: RootStatus | None) -> ExecutionState:
    return ExecutionState(RunState(status.state), status.reason) if status else ExecutionState(RunState.RUNNING)
