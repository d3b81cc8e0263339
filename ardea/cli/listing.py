"""``ardea list``: the topologies of a state directory."""

from __future__ import annotations

from typing import Any

from ardea.cli import console
from ardea.cli.console import Output, OutputOption, StateOption
from ardea.cli.places import also_on_kubernetes
from ardea.cli.tables import fitted
from ardea.scheduler.home import Home
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.topologies import listing as roots
from ardea.state.topologies import TopologyStatus, listing

REFUSED = "`ardea update` and `ardea restart` refuse it"


def _on_cluster(cluster: Cluster, output: Output) -> None:
    _show([row(found.topology) for found in roots(cluster)], output, f"namespace {cluster.namespace}")


@console.reports
@also_on_kubernetes(_on_cluster)
def list_topologies(output: OutputOption = Output.TABLE, state: StateOption = console.STATE) -> None:
    """List the topologies, the newest first."""
    home = Home(state)
    with home.open_state() as manager:
        rows = [row(topology) for topology in listing(manager)]
    _show(rows, output, home.address)


def _show(rows: list[dict[str, Any]], output: Output, place: str) -> None:
    if output is Output.JSON:
        console.print_json({"topologies": rows})
        return
    if not rows:
        console.say(f"no topologies in {place}")
        return
    cells = [
        (each["name"], each["id"], state_of(each), each["submitted_at"] or "?", each["submitted_by"] or "?")
        for each in rows
    ]
    out = console.out()
    columns = ("Name", "Id", "State", "Submitted", "By")
    out.print(fitted(columns, cells, out.width, least=("By", "Submitted")), crop=False)


def row(topology: TopologyStatus) -> dict[str, Any]:
    """What every verb says of a topology.  Keys are only ever added."""
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
    }


def state_of(row: dict[str, Any]) -> str:
    """A topology that should run, but has nobody who keeps it, is dead: its `ardea run` or daemon was killed."""
    if row["state"] is None:
        return "UNREADABLE"
    final = row["state"] in ("SUCCEEDED", "FAILED", "KILLED")
    return str(row["state"]) if row["running"] or final else "DEAD"
