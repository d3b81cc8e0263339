"""``ardea describe``: who submitted what, where its tasks run, and what ails them."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from ardea.cli import console, documents, remote
from ardea.cli.console import Name, Output, OutputOption, StateOption
from ardea.cli.drawing import draw
from ardea.cli.listing import row, state_of
from ardea.cli.places import also_on_kubernetes
from ardea.cli.progress import jobs
from ardea.cli.tables import fitted
from ardea.errors import ClusterError, NotFound, OtherVersion, StateError, Unreachable
from ardea.metrics import Totals
from ardea.protocol.incarnations import admission_of, life_of
from ardea.scheduler.control import MasterClient, Status, Unreadable, unfinished
from ardea.scheduler.home import Home
from ardea.scheduler.kubernetes import names
from ardea.scheduler.kubernetes.client import Cluster
from ardea.scheduler.kubernetes.describe import pod_rows, process_rows
from ardea.scheduler.kubernetes.topologies import find as find_root
from ardea.scheduler.kubernetes.topologies import pods_of
from ardea.scheduler.kubernetes.waiting import refusals
from ardea.scheduler.packing.amounts import format_bytes, format_cpu
from ardea.scheduler.processes import ProcessRow, metrics_ports, processes
from ardea.state import StateManager, paths, records
from ardea.state.records import SchedulerLocation
from ardea.supervision.spec import RESTARTED

_LEAST = ("Asked", "CPU s", "Memory", "Pid", "Life", "Container", "Pending", "Restarts", "Process", "Acked", "Executed")
"""The columns that a narrow terminal does without, the first one first."""


def _on_cluster(cluster: Cluster, name: str, output: Output, plan: bool = False) -> None:
    """Without a master, what its objects say."""
    if plan:
        draw(name, {}, output)
        return
    found = find_root(cluster, name)
    pods = pods_of(cluster, found.id)
    jobs = cluster.list("Job", names.of_topology(found.id))
    told = remote.described_by_master(cluster, found.id) if found.topology.running else None
    rows = process_rows(found.blueprint, pods)
    execution, record = found.topology.execution, found.topology.record
    silence = "no master answers" if found.topology.running and told is None else None
    document = (told or {"status": None, "master_silent": silence}) | row(found.topology)
    status: Status | None = None
    try:
        status = remote.status_in(told, found.id)
    except ClusterError as error:  # its objects can be read even so
        document |= {"status": None, "master_silent": error.message}
    document |= {
        "reason": execution.reason if execution else "",
        "topology_class": record.topology_class if record else None,
        "submitted_from": record.submitted_from if record else None,
        "version": record.ardea_version if record else None,
        "kept_by": {"scheduler": "kubernetes", "host": cluster.namespace, "pid": 0},
        "processes": msgspec.to_builtins(rows),
        "metrics_ports": None,  # the pods' specifications have them
        "pods": pod_rows(pods, jobs, refusals(cluster, jobs, pods)),
        "folder": None,
    }
    _show(document, status, rows, output)


@console.reports
@also_on_kubernetes(_on_cluster)
def describe(
    name: Name,
    output: OutputOption = Output.TABLE,
    state: StateOption = console.STATE,
    plan: Annotated[bool, typer.Option("--plan", help="Draw its plan instead; TOPOLOGY may be FILE[:Class].")] = False,
) -> None:
    """Show who submitted a topology, where its tasks run, what ails them."""
    home = Home(state)
    if plan and Path(name.partition(":")[0]).is_file():
        draw(name, {}, output)
        return
    with home.open_state() as manager:
        topology = home.topology(manager, name)
        if plan and (submitted := topology.record) is not None:
            draw(submitted.location, submitted.config, output)
            return
        folder = home.folder(topology.id)
        status: Status | None = None
        silence = ""
        if topology.running:
            try:
                with MasterClient(manager, topology.id, folder) as client:
                    status = client.ask("status")
            except (
                Unreachable,
                Unreadable,
                OtherVersion,
            ) as error:  # just then one wants to know what its processes do
                silence = error.message
        keeper = _keeper(manager, topology.id)
    rows = processes(folder, time.time())
    execution, record = topology.execution, topology.record
    document = row(topology) | {
        "reason": execution.reason if execution else str(topology.problem),
        "topology_class": record.topology_class if record else None,
        "submitted_from": record.submitted_from if record else None,
        "version": record.ardea_version if record else None,
        "kept_by": msgspec.to_builtins(keeper),
        "master_silent": silence or None,
        "status": documents.of_status(status),
        "processes": msgspec.to_builtins(rows),
        "metrics_ports": metrics_ports(folder) if topology.running else None,
        "folder": str(folder),
    }
    _show(document, status, rows, output)


def _show(document: dict[str, Any], status: Status | None, rows: list[ProcessRow], output: Output) -> None:
    if output is Output.JSON:
        console.print_json(document)
    else:
        _print(document, status, rows)


def _keeper(state: StateManager, topology_id: str) -> SchedulerLocation | None:
    path = paths.scheduler(topology_id)
    with contextlib.suppress(NotFound, StateError):
        return records.decode(state.get(path).data, SchedulerLocation, path)
    return None


def _print(document: dict[str, Any], status: Status | None, rows: list[ProcessRow]) -> None:
    out = console.out()

    def line(text: str) -> None:
        out.print(console.indented(text), soft_wrap=True)  # a path stays whole

    facts = [
        ("Topology", document["name"]),
        ("Id", document["id"]),
        ("State", state_of(document)),
        ("Reason", document["reason"]),
        ("File", document["location"]),
        ("Class", document["topology_class"]),
        ("Submitted", f"{document['submitted_at']} by {document['submitted_by']}"),
        ("Version", document["version"]),
        ("Other version", document.get("other_version")),
        ("Kept by", _kept(document["kept_by"])),
        ("Folder", document["folder"]),
        ("Metrics", _ports(document["metrics_ports"])),
        ("Master", document["master_silent"]),
    ]
    if status is not None:
        missing = [f"container {number}" for number in status.missing_containers] + status.silent_tasks
        facts += [("Not registered", ", ".join(missing) or "none"), ("Given up", f"{status.given_up:,}")]
        facts.append(("Unfinished", unfinished(status)))
        facts.append(("Spark", ", ".join(jobs(status.components))))
    for label, value in facts:
        if value:
            line(f"{label:<14}  {value}")
    if status is not None:
        out.print(_tasks(status, rows, out.width), crop=False)
        for error in status.errors:
            line(f"error: {error}")
    for pod in document.get("pods", ()):
        where = f"pod {pod['pod']} on {pod['node'] or 'no node'}, {pod['phase']}" if pod["pod"] else "no pod"
        line(f"container {pod['container']}: {where}" + (f"; {pod['trouble']}" if pod["trouble"] else ""))
    for process in rows:
        where = f" (container {process.container})" if process.container is not None else ""
        if process.state == "stuck":
            line(f"stuck: {process.name}{where} is in one call of user code; its log has the stack of every thread")
        if process.state == "silent":
            line(
                f"silent: the rows of {process.name}{where} wait: user code keeps the interpreter lock, in a call in C "
                "that does not give it up; its log has the stack of every thread"
            )
        if process.crash_loop:
            line(f"crash loop: {process.name}{where} {process.crash_loop}")
        elif process.restarts and process.last_reason and RESTARTED not in process.last_reason:
            times = "once" if process.restarts == 1 else f"{process.restarts} times"
            line(f"restarted: {process.name}{where}, {times}; its last end: {process.last_reason}")


def _ports(ports: dict[int, int] | None) -> str | None:
    if not ports:
        return None
    return f"http://127.0.0.1:PORT/metrics, PORT of {', '.join(f'container {n}: {p}' for n, p in ports.items())}"


def _kept(keeper: dict[str, Any] | None) -> str | None:
    if keeper is None:
        return None
    if keeper["scheduler"] == "kubernetes":
        return f"Jobs in namespace {keeper['host']}"
    return f"process {keeper['pid']} on {keeper['host']}"


def _tasks(status: Status, processes: list[ProcessRow], width: int) -> Table:
    numbers = ("Emitted", "Executed", "Acked", "Failed", "Pending")
    names = ("Task", "Container", "Pid", "State", "Process", "Life", "Restarts", "CPU s", "Memory", "Asked")
    rows = []
    counted = {each.process: each.totals for each in status.processes if each.component}
    running = {each.name: each for each in processes}
    for task, told in sorted(status.tasks.items()):
        process, totals = running.get(task), counted.get(task, Totals())
        life = f"{admission_of(told.life)}.{life_of(told.life)}"
        if process is None:  # its supervisor has not written anything yet
            where, how = ("?", "?"), ("?", life, "0")
        else:
            where = (str(process.container), str(process.pid or "-"))
            how = (process.state, life, str(process.restarts))
        used = (f"{totals.cpu_seconds:,.1f}", format_bytes(totals.resident_memory_bytes))
        asked = f"{format_cpu(told.asked.cpu)} CPU, {format_bytes(told.asked.ram)}"
        counts = (totals.emitted, totals.executed, totals.acked, totals.failed, totals.pending)
        rows.append((task, *where, told.state, *how, *used, asked, *(f"{count:,}" for count in counts)))
    return fitted((*names, *numbers), rows, width, least=_LEAST, numbers=(*numbers, "CPU s", "Memory"))
