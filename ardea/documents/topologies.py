"""``ardea list`` and ``ardea describe``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ardea.documents.figures import StatusDocument, of_status
from ardea.health import Health, ProcessRow
from ardea.scheduler.schedulers import Description
from ardea.state.records import SchedulerLocation
from ardea.state.topologies import TopologyStatus

REFUSED = "`ardea update` and `ardea restart` refuse it"


class TopologyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What every verb says of a topology.

    Attributes:
        name: that it was submitted under.
        id: of this run of it.
        state: RUNNING, PAUSED, ENDING, SUCCEEDED, FAILED, KILLED; null: it cannot be read.
        running: its state is not final and somebody keeps it.
        submitted_at: ISO 8601.
        submitted_by: ``user@machine``.
        location: its file, or the bundle that it came in.
        other_version: both versions, if another one has submitted it.
        problem: why its records cannot be read.
        health: null once it has ended.
    """

    name: str
    id: str
    state: str | None
    running: bool
    submitted_at: str | None
    submitted_by: str | None
    location: str | None
    other_version: str | None
    problem: str | None
    health: Health | None


class TopologiesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All topologies of a place, the newest first."""

    topologies: list[TopologyDocument]


class DescriptionDocument(TopologyDocument, frozen=True, kw_only=True):
    """What is known of a topology.

    Attributes:
        reason: why it is in its state.
        topology_class: the author's.
        submitted_from: a machine.
        version: of Ardea, that submitted it.
        kept_by: who keeps its processes.
        master_silent: why its master has not answered.
        status: what its master says.
        processes: one row each.
        metrics_ports: container -> port of this machine.
        pods: ``container``, ``pod``, ``node``, ``phase``, ``trouble`` of each.
        folder: where its files lie on this machine.
    """

    reason: str
    topology_class: str | None
    submitted_from: str | None
    version: str | None
    kept_by: SchedulerLocation | None
    master_silent: str | None
    status: StatusDocument | None
    processes: list[ProcessRow]
    metrics_ports: dict[int, int] | None
    pods: list[dict[str, Any]] | None
    folder: str | None


def of_topology(topology: TopologyStatus) -> TopologyDocument:
    """A row of ``ardea list``."""
    return TopologyDocument(**_row(topology))


def of_topologies(topologies: Iterable[TopologyStatus]) -> TopologiesDocument:
    """``ardea list``."""
    return TopologiesDocument(topologies=list(map(of_topology, topologies)))


def of_description(description: Description) -> DescriptionDocument:
    """``ardea describe``."""
    topology, ports = description.topology, description.metrics_ports
    execution, record = topology.execution, topology.record
    known = {
        "reason": execution.reason if execution else str(topology.problem),
        "topology_class": record.topology_class if record else None,
        "submitted_from": record.submitted_from if record else None,
        "version": record.ardea_version if record else None,
        "kept_by": description.kept_by,
        "master_silent": description.silence or None,
        "status": of_status(description.status),
        "health": description.health,
        "processes": description.processes,
        "metrics_ports": None if ports is None else dict(ports),
        "pods": description.pods,
        "folder": str(description.folder) if description.folder else None,
    }
    return DescriptionDocument(**(_row(topology) | known))


def _row(topology: TopologyStatus) -> dict[str, Any]:
    record = topology.record
    return {
        "name": topology.name,
        "id": topology.id,
        "state": topology.execution.state.value if topology.execution else None,
        "running": topology.running,
        "submitted_at": record.submitted_at.isoformat(timespec="seconds") if record else None,
        "submitted_by": f"{record.submitted_by}@{record.submitted_from}" if record else None,
        "location": record.location if record else None,
        "other_version": f"{record.differs}; {REFUSED}" if record and record.differs else None,
        "problem": str(topology.problem) if topology.problem else None,
        "health": topology.health,
    }
