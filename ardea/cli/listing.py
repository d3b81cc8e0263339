"""``ardea list``: the topologies of one place."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from ardea.cli import console
from ardea.cli.console import Output, OutputOption
from ardea.cli.tables import fitted
from ardea.scheduler.schedulers import Scheduler
from ardea.state.topologies import TopologyStatus

REFUSED = "`ardea update` and `ardea restart` refuse it"


def list_topologies(scheduler: Scheduler, output: OutputOption = Output.TABLE) -> None:
    """List the topologies, the newest first."""
    found = scheduler.topologies()
    if output is Output.JSON:
        console.print_json({"topologies": list(map(row, found))})
        return
    if not found:
        console.say(f"no topologies in {scheduler.place}")
        return
    cells = [_cells(topology) for topology in found]
    out = console.out()
    columns = ("Name", "Id", "State", "Health", "Submitted", "By")
    out.print(fitted(columns, cells, out.width, least=("By", "Submitted")), crop=False)
    now = time.time()
    for topology in found:
        for trouble in topology.health.lines(now) if topology.health else ():
            out.print(console.indented(f"{topology.id}: {trouble}"), soft_wrap=True)


def _cells(topology: TopologyStatus) -> tuple[str, ...]:
    submitted = row(topology)
    by = submitted["submitted_at"] or "?", submitted["submitted_by"] or "?"
    return (topology.name, topology.id, topology.state, topology.health.state if topology.health else "-", *by)


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
        "health": msgspec.to_builtins(topology.health),
    }
