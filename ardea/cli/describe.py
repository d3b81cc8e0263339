"""``ardea describe``: who submitted what, where its tasks run, and what is wrong."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from ardea.cli import console, raised_lines
from ardea.cli.console import Name
from ardea.cli.drawing import PlanOutput, draw_file, draw_submitted
from ardea.cli.graphs import DRAWN
from ardea.cli.progress import batches, jobs
from ardea.cli.snapshot_lines import facts as of_snapshots
from ardea.cli.stall_lines import facts as of_stalls
from ardea.cli.stories import stuck
from ardea.cli.tables import fitted
from ardea.cli.time_lines import lags, windows
from ardea.documents.topologies import of_description
from ardea.errors import ArdeaError, UsageError
from ardea.health import ProcessRow, Raised
from ardea.metrics import Totals
from ardea.protocol.incarnations import admission_of, life_of
from ardea.scheduler.control import Status, story_lines, unfinished
from ardea.scheduler.packing.amounts import format_bytes, format_cpu
from ardea.scheduler.schedulers import Description, Handle, Scheduler
from ardea.state.records import SchedulerLocation
from ardea.supervision.spec import RESTARTED

_LEAST = ("Asked", "CPU s", "Memory", "Pid", "Life", "Container", "Pending", "Restarts", "Process", "Acked", "Executed")
"""The columns that a narrow terminal does without, the first one first."""

_LIFE = "Life A.L: the L-th start of the process in the A-th place, a pod or a supervisor, that its container has had"


def describe(
    scheduler: Scheduler,
    name: Name,
    output: Annotated[
        PlanOutput, typer.Option("--output", "-o", help="The format of stdout; mermaid and dot with --plan.")
    ] = PlanOutput.TABLE,
    plan: Annotated[
        bool, typer.Option("--plan", help="Draw the topology's plan instead; TOPOLOGY may be FILE[:Class].")
    ] = False,
) -> None:
    """Show who submitted a topology, where its tasks run, and what is wrong."""
    if not plan and output in DRAWN:
        raise UsageError(f"-o {output} draws a plan, and --plan is not given", hint=f"--plan -o {output}")
    if plan and Path(name.partition(":")[0]).is_file():
        draw_file(name, output)
        return
    with scheduler.find(name) as found:
        if plan:
            draw_submitted(found, output)
            return
        description = found.describe()
        raised = [] if output is PlanOutput.JSON else _raised(found, description)
    if output is PlanOutput.JSON:
        console.print_json(msgspec.to_builtins(of_description(description)))
    else:
        _print(description, raised)


def _raised(found: Handle, description: Description) -> list[Raised]:
    """Asked for only where something was raised, as far as anybody answers."""
    if description.status is not None and description.status.errors:
        with contextlib.suppress(ArdeaError):
            return found.exceptions()
    return []


def _print(description: Description, raised: Sequence[Raised] = ()) -> None:
    status, rows = description.status, description.processes
    out = console.out()

    def line(text: str) -> None:
        out.print(console.indented(text), soft_wrap=True)  # a path stays whole

    for label, value in _facts(description):
        if value:
            line(f"{label:<14}  {value}")
    for trouble in description.health.lines(time.time()) if description.health else ():
        line(trouble)
    if status is not None:
        out.print(_tasks(status, rows, out.width), crop=False)
        line(_LIFE)
        for error in status.errors:
            line(f"error: {error}")
        for group in raised_lines.lines(raised, time.time()):
            line(group)
    for pod in description.pods or ():
        where = f"pod {pod['pod']} on {pod['node'] or 'no node'}, {pod['phase']}" if pod["pod"] else "no pod"
        line(f"container {pod['container']}: {where}" + (f"; {pod['trouble']}" if pod["trouble"] else ""))
    for process in rows:
        if text := _restarted(process):
            line(text)
    for text in story_lines(status, stuck(status, rows)) if status is not None else ():
        line(text)


def _facts(description: Description) -> Iterator[tuple[str, str | None]]:
    """Label and value; what has no value is not said."""
    document, status = of_description(description), description.status
    yield "Topology", document.name
    yield "Id", document.id
    yield "State", description.topology.state
    yield "Health", description.health.state if description.health else None
    yield "Reason", document.reason
    yield "File", document.location
    yield "Class", document.topology_class
    yield "Submitted", f"{document.submitted_at} by {document.submitted_by}"
    yield "Version", document.version
    yield "Other version", document.other_version
    yield "Kept by", _kept(description.kept_by)
    yield "Folder", document.folder
    yield "Metrics", _ports(description.metrics_ports)
    yield "Master", description.silence or _acting(status)
    if status is not None:
        missing = [f"container {number}" for number in status.missing_containers] + status.silent_tasks
        yield "Not registered", ", ".join(missing) or "none"
        yield "Given up", f"{status.given_up:,}"
        yield "Unfinished", unfinished(status)
        yield from of_stalls(status.stalls, time.time())
        yield "Watermark lag", lags(status.processes)
        yield "Windows", windows(status.components)
        yield "Spark", ", ".join(jobs(status.components))
        yield "Batches", ", ".join(batches(status.components))
        if status.snapshots is not None:
            yield from of_snapshots(status.snapshots)


def _restarted(process: ProcessRow) -> str:
    """What is said of a process that has died, and works again; empty: it has not."""
    if process.crash_loop or not process.restarts or not process.last_reason or RESTARTED in process.last_reason:
        return ""
    where = f" (container {process.container})" if process.container is not None else ""
    times = "once" if process.restarts == 1 else f"{process.restarts} times"
    return f"restarted: {process.name}{where}, {times}; its last end: {process.last_reason}"


def _acting(status: Status | None) -> str | None:
    return f"{status.acting} acts, term {status.term}" if status is not None and status.acting else None


def _ports(ports: Mapping[int, int] | None) -> str | None:
    if not ports:
        return None
    return f"http://127.0.0.1:PORT/metrics, PORT of {', '.join(f'container {n}: {p}' for n, p in ports.items())}"


def _kept(keeper: SchedulerLocation | None) -> str | None:
    if keeper is None:
        return None
    if keeper.scheduler == "kubernetes":
        return f"Jobs in namespace {keeper.host}"
    return f"process {keeper.pid} on {keeper.host}"


def _tasks(status: Status, processes: list[ProcessRow], width: int) -> Table:
    numbers = ("Emitted", "Executed", "Acked", "Failed", "Pending")
    names = ("Task", "Container", "Pid", "State", "Process", "Life", "Restarts", "CPU s", "Memory", "Asked")
    rows = []
    counted = {each.process: each.totals for each in status.processes if each.component}
    running = {each.name: each for each in processes}
    for task, report in sorted(status.tasks.items()):
        process, totals = running.get(task), counted.get(task, Totals())
        life = f"{admission_of(report.life)}.{life_of(report.life)}"
        if process is None:  # its supervisor has not written anything yet
            where, how = ("?", "?"), ("?", life, "0")
        else:
            where = (str(process.container), str(process.pid or "-"))
            how = (process.state, life, str(process.restarts))
        used = (f"{totals.cpu_seconds:,.1f}", format_bytes(totals.resident_memory_bytes))
        asked = f"{format_cpu(report.asked.cpu)} CPU, {format_bytes(report.asked.ram)}"
        counts = (totals.emitted, totals.executed, totals.acked, totals.failed, totals.pending)
        rows.append((task, *where, report.state, *how, *used, asked, *(f"{count:,}" for count in counts)))
    return fitted((*names, *numbers), rows, width, least=_LEAST, numbers=(*numbers, "CPU s", "Memory"))
