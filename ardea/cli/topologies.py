"""The verbs for topologies that run, or ran, on this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.table import Table

from ardea.cli import console
from ardea.cli.console import NAME, Output, OutputOption, StateOption
from ardea.cli.logs import Tail, log_files
from ardea.errors import ArdeaError, ExitCode, NotFound, Unreachable
from ardea.metrics import Totals
from ardea.protocol.ids import admission_of, life_of
from ardea.state import StateManager, paths
from ardea.state.topologies import TopologyStatus, find, listing, remove
from scheduler.control import MasterClient, Status
from scheduler.home import Home, is_held

Name = Annotated[str, NAME]
DRAIN_SECS = 10.0
GONE_WITHIN = 20.0
"""Seconds beyond the drain that processes have to end."""
LOOK_EVERY = 0.2


class TimedOut(ArdeaError):  # noqa: N818 -- as its siblings in ardea.errors
    """What was asked for has not happened in time."""

    exit_code = ExitCode.TIMED_OUT


@dataclass(frozen=True, slots=True)
class Running:
    """A topology that was found running, and the way to its master."""

    state: StateManager
    topology: TopologyStatus
    client: MasterClient


@console.reports
def list_topologies(output: OutputOption = Output.TABLE, state: StateOption = console.STATE) -> None:
    """List the topologies of the state directory, the newest first."""
    with Home(state).open_state() as manager:
        rows = [_row(topology) for topology in listing(manager)]
    if output is Output.JSON:
        console.print_json({"topologies": rows})
        return
    table = Table("Name", "Id", "State", "Submitted", "By", box=None, pad_edge=False)
    for row in rows:
        table.add_row(row["name"], row["id"], _state_of(row), row["submitted_at"] or "?", row["submitted_by"] or "?")
    console.out().print(table)


@console.reports
def describe(name: Name, output: OutputOption = Output.TABLE, state: StateOption = console.STATE) -> None:
    """Show a topology's state, containers, tasks, who has not registered, and the last errors."""
    home = Home(state)
    with home.open_state() as manager:
        topology = find(manager, name)
        status: Status | None = None
        if topology.running:
            with MasterClient(manager, topology.id, home.folder(topology.id)) as client:
                status = client.ask("status")
    document = _row(topology) | {
        "reason": topology.execution.reason if topology.execution else str(topology.problem),
        "status": msgspec.to_builtins(status),
        "folder": str(home.folder(topology.id)),
    }
    if output is Output.JSON:
        console.print_json(document)
    else:
        _print_description(document, status)


@console.reports
def logs(
    name: Name,
    selection: Annotated[
        str | None, typer.Argument(metavar="COMPONENT[:INDEX]", help="A component, one of its tasks, or a process.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the topology has ended.")] = False,
    state: StateOption = console.STATE,
) -> None:
    """Print the logs of a topology that runs, or of one of the last twenty that ran."""
    folder = Home(state).find(name)
    tails: dict[Path, tuple[str, Tail]] = {}
    while True:
        held = is_held(folder)  # before the last look, so that nothing is missed
        for log in _logs_there(folder, selection, running=held):
            if log.path not in tails:
                tails[log.path] = log.label, Tail(log.path)
                _print_lines(log.label, tails[log.path][1].history(), several=selection is None)
        for label, tail in tails.values():
            _print_lines(label, tail.lines(), several=selection is None or len(tails) > 1)
        if not (follow and held):
            return
        time.sleep(LOOK_EVERY)


@console.reports
def activate(name: Name, state: StateOption = console.STATE) -> None:
    """Let the spouts of a deactivated topology go on."""
    _order(name, state, "activate", "is active")


@console.reports
def deactivate(name: Name, state: StateOption = console.STATE) -> None:
    """Pause the spouts of a topology; what they have emitted is still processed."""
    _order(name, state, "deactivate", "is deactivated; `ardea activate` lets it go on")


@console.reports
def kill(
    name: Name,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=0, help="How long open tuples may take to finish.")
    ] = DRAIN_SECS,
    state: StateOption = console.STATE,
) -> None:
    """End a topology: stop its spouts, wait for open tuples, end its processes, forget it.  Can be repeated."""
    home = Home(state)
    with home.open_state() as manager:
        topology = find(manager, name)
        if topology.running:
            with MasterClient(manager, topology.id, home.folder(topology.id)) as client:
                console.say(f"{topology.id}: no new tuples; open ones have {wait_secs:g} s")
                client.ask("drain", wait=str(wait_secs))
            _await_end(manager, topology.id, wait_secs + GONE_WITHIN)
        remove(manager, topology.id)
        console.say(f"{topology.id} is gone; its logs stay in {home.folder(topology.id)}")


def _await_end(manager: StateManager, topology_id: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while manager.exists(paths.scheduler(topology_id)):
        if time.monotonic() >= deadline:
            raise TimedOut(
                f"{topology_id} still runs {patience:g} s after it was told to end",
                hint=f"Ctrl-C, twice, in its `ardea run`; or repeat `ardea kill {topology_id}`",
            )
        time.sleep(LOOK_EVERY)


def _order(name: str, state: Path, verb: str, done: str) -> None:
    with _running(name, Home(state)) as running:
        running.client.ask(verb)
        console.say(f"{running.topology.id} {done}")


@contextlib.contextmanager
def _running(name: str, home: Home) -> Iterator[Running]:
    with home.open_state() as manager:
        topology = find(manager, name)
        if not topology.running:
            state = topology.execution.state if topology.execution else "in an unreadable state"
            raise Unreachable(
                f"{topology.id} does not run; it is {state}", hint="`ardea list` shows which topologies run"
            )
        with MasterClient(manager, topology.id, home.folder(topology.id)) as client:
            yield Running(manager, topology, client)


def _logs_there(folder: Path, selection: str | None, *, running: bool) -> list[Any]:
    try:
        return list(log_files(folder, selection))
    except NotFound:
        if running and not any(folder.glob("container-*/logs/*.log")):
            return []  # it is only just starting
        raise


def _print_lines(label: str, lines: Iterator[str], *, several: bool) -> None:
    for line in lines:
        print(f"{label}: {line}" if several else line, flush=True)  # noqa: T201


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
        "problem": str(topology.problem) if topology.problem else None,
    }


def _state_of(row: dict[str, Any]) -> str:
    """A topology that should run, but has nobody who keeps it, is dead: its `ardea run` was killed."""
    if row["state"] is None:
        return "UNREADABLE"
    final = row["state"] in ("SUCCEEDED", "FAILED", "KILLED")
    return str(row["state"]) if row["running"] or final else "DEAD"


def _print_description(document: dict[str, Any], status: Status | None) -> None:
    console_ = console.out()
    facts = Table.grid(padding=(0, 2))
    for label, value in (
        ("Topology", document["name"]),
        ("Id", document["id"]),
        ("State", _state_of(document)),
        ("Reason", document["reason"]),
        ("File", document["location"]),
        ("Submitted", f"{document['submitted_at']} by {document['submitted_by']}"),
        ("Folder", document["folder"]),
    ):
        if value:
            facts.add_row(label, str(value))
    if status is not None:
        missing = [f"container {number}" for number in status.missing_containers] + status.silent_tasks
        facts.add_row("Not registered", ", ".join(missing) or "none")
        facts.add_row("Given up", f"{status.given_up:,}")
    console_.print(facts, highlight=False)
    if status is None:
        return
    rows = {row.process: row for row in status.processes if row.component}
    table = Table(
        "Task",
        "Container",
        "State",
        "Life",
        "Emitted",
        "Executed",
        "Acked",
        "Failed",
        "Pending",
        box=None,
        pad_edge=False,
    )
    for task, told in sorted(status.tasks.items()):
        row = rows.get(task)
        totals = row.totals if row else Totals()
        counts = (totals.emitted, totals.executed, totals.acked, totals.failed, totals.pending)
        where = str(row.container) if row else "?"
        life = f"{admission_of(told.life)}.{life_of(told.life)}"
        table.add_row(task, where, told.state, life, *(f"{count:,}" for count in counts))
    console_.print(table)
    for error in status.errors:
        console_.print(f"error: {error}", highlight=False, markup=False, soft_wrap=True)
