"""``ardea list``: the topologies of one place."""

from __future__ import annotations

import time

import msgspec

from ardea.cli import console
from ardea.cli.console import Output, OutputOption
from ardea.cli.tables import fitted
from ardea.documents.topologies import of_topologies, of_topology
from ardea.scheduler.schedulers import Scheduler
from ardea.state.topologies import TopologyStatus


def list_topologies(scheduler: Scheduler, output: OutputOption = Output.TABLE) -> None:
    """List the topologies, the newest first."""
    found = scheduler.topologies()
    if output is Output.JSON:
        console.print_json(msgspec.to_builtins(of_topologies(found)))
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
    submitted = of_topology(topology)
    by = submitted.submitted_at or "?", submitted.submitted_by or "?"
    return (topology.name, topology.id, topology.state, topology.health.state if topology.health else "-", *by)
