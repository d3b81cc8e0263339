"""The verbs for topologies that run, or ran, on this machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ardea.cli import console, remote
from ardea.cli.console import Name, StateOption
from ardea.cli.logs import Tail, log_files
from ardea.cli.places import also_on_kubernetes
from ardea.cli.running import running, same_version
from ardea.errors import NotFound
from ardea.plan.names import CONTAINERS
from ardea.scheduler.home import Home, is_held
from ardea.scheduler.machine import Local
from ardea.scheduler.restart import Restart

DRAIN_SECS = 10.0
BACK_WITHIN = 60.0
LOOK_EVERY = 0.2


@console.reports
@also_on_kubernetes(remote.logs)
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
@also_on_kubernetes(remote.activate)
def activate(name: Name, state: StateOption = console.STATE) -> None:
    """Let the spouts of a deactivated topology go on."""
    _order(name, state, "activate", "is active")


@console.reports
@also_on_kubernetes(remote.deactivate)
def deactivate(name: Name, state: StateOption = console.STATE) -> None:
    """Pause the spouts of a topology; what they have emitted is still processed."""
    _order(name, state, "deactivate", "is deactivated; `ardea activate` lets it go on")


@console.reports
@also_on_kubernetes(remote.kill)
def kill(
    name: Name,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=0, help="How long open tuples may take to finish.")
    ] = DRAIN_SECS,
    state: StateOption = console.STATE,
) -> None:
    """End a topology and forget it; its logs stay.

    Its spouts stop, open tuples may finish, then its processes end.  Can be repeated.
    """
    Local(state=state).kill(name, wait_secs, console.say)


@console.reports
@also_on_kubernetes(remote.restart)
def restart(
    name: Name,
    container: Annotated[
        int | None, typer.Option(min=0, help="Only this container; 0 is the master's.  Default: all.")
    ] = None,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=0, help="How long to wait until everything is back.")
    ] = BACK_WITHIN,
    state: StateOption = console.STATE,
) -> None:
    """Restart the processes of one container, or of all.

    The topology goes on; tuples that were open are replayed.
    """
    home = Home(state)
    with running(name, home) as found:
        same_version(found.topology, "restart")
        folder = home.folder(found.topology.id)
        restart = Restart(found.client, folder, clock=time.monotonic)
        chosen = restart.containers() if container is None else [container]
        restart.restart(chosen, wait_secs)
        names = ", ".join(map(str, chosen))
        console.say(f"{found.topology.id}: restarted container{'s' if len(chosen) > 1 else ''} {names}")


def _order(name: str, state: str, verb: str, done: str) -> None:
    with running(name, Home(state)) as found:
        found.client.ask(verb)
        console.say(f"{found.topology.id} {done}")


def _logs_there(folder: Path, selection: str | None, *, running: bool) -> list[Any]:
    try:
        return list(log_files(folder, selection))
    except NotFound:
        if running and not any(folder.glob(f"{CONTAINERS}/logs/*.log")):
            return []  # it is only just starting
        raise


def _print_lines(label: str, lines: Iterator[str], *, several: bool) -> None:
    for line in lines:
        print(console.shown(f"{label}: {line}" if several else line), flush=True)  # noqa: T201
