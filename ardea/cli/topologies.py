"""The verbs for one topology, wherever it runs."""

from __future__ import annotations

import contextlib
import re
from typing import Annotated

import typer

from ardea.cli import completion, console
from ardea.cli.console import Name, finite
from ardea.cli.savepoint import SAVED_WITHIN, To, saved
from ardea.documents.levels import Level, Levels
from ardea.errors import NotFound, UsageError
from ardea.scheduler.schedulers import Scheduler

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
DRAIN_SECS = 10.0
BACK_WITHIN = 60.0


def duration(text: str) -> float:
    """Seconds: ``90``, ``90s``, ``10m``, ``2h``, ``1d``.

    Raises:
        UsageError: it is none.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", text)
    if found is None:
        raise UsageError(f"--since takes seconds, or 10m, 2h, 1d, not {text!r}")
    return float(found[1]) * _UNITS[found[2] or "s"]


def logs(
    scheduler: Scheduler,
    name: Name,
    selection: Annotated[
        str | None,
        typer.Argument(
            metavar="COMPONENT[:INDEX]",
            help="A component, one of its tasks, or a process.",
            autocompletion=completion.components,
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the topology has ended.")] = False,
    tail: Annotated[
        int | None, typer.Option(min=0, metavar="LINES", help="Print only the last lines of each process.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SECS", help="Print only lines of the last seconds, or of 10m, 2h, 1d.")
    ] = None,
    level: Annotated[
        Level | None,
        typer.Option(
            case_sensitive=False, help="Print only records of this level or above, with the lines that follow them."
        ),
    ] = None,
) -> None:
    """Print the logs of a topology that runs, or of one of the last twenty that ran."""
    with scheduler.logs(name) as found:
        several = selection is None or len(found.names(selection)) != 1
        shown = Levels(level)
        for line in found.lines(selection, follow=follow, tail=tail, since=None if since is None else duration(since)):
            if line is not None and shown.passes(line):
                text = f"{line.label}: {line.text}" if several else line.text
                print(console.shown(text), flush=True)  # noqa: T201


def activate(scheduler: Scheduler, name: Name) -> None:
    """Let the spouts of a deactivated topology go on."""
    _order(scheduler, name, "activate", "is active")


def deactivate(scheduler: Scheduler, name: Name) -> None:
    """Pause the spouts of a topology; what they have emitted is still processed."""
    _order(scheduler, name, "deactivate", "is deactivated; `ardea activate` lets it go on")


def kill(
    scheduler: Scheduler,
    name: Name,
    wait_secs: Annotated[
        float | None,
        typer.Option(
            "--wait-secs",
            min=0,
            callback=finite,
            help="How long open tuples may take to finish, 10; with --savepoint, that one, 60.",
        ),
    ] = None,
    with_savepoint: Annotated[
        bool, typer.Option("--savepoint", help="Copy all its state into a folder first; if that fails, it goes on.")
    ] = False,
    to: To = None,
) -> None:
    """End a topology and forget it; its logs and savepoints stay.

    Its spouts stop, open tuples may finish, then its processes end.  Can be repeated.
    """
    if not with_savepoint:
        if to is not None:
            raise UsageError("--to says where a savepoint lies, and --savepoint is not given")
        _kill(scheduler, name, DRAIN_SECS if wait_secs is None else wait_secs)
        return
    with scheduler.find(name) as found:
        saved(found, to, SAVED_WITHIN if wait_secs is None else wait_secs, ends=True)
    with contextlib.suppress(NotFound):  # its terminal has forgotten it already
        _kill(scheduler, found.id, DRAIN_SECS)


def _kill(scheduler: Scheduler, name: str, wait_secs: float) -> None:
    with console.interruptible(f"{name} may be ending; its name stays taken until another `ardea kill` has finished"):
        scheduler.kill(name, wait_secs, console.say)


def restart(
    scheduler: Scheduler,
    name: Name,
    container: Annotated[
        int | None, typer.Option(min=0, help="Only this container; 0 is the master's.  Default: all.")
    ] = None,
    wait_secs: Annotated[
        float,
        typer.Option("--wait-secs", min=0, callback=finite, help="How long to wait until everything is back."),
    ] = BACK_WITHIN,
) -> None:
    """Restart the processes of one container, or of all.

    The topology goes on; tuples that were open are replayed.
    """
    with scheduler.find(name) as found:
        shows = f"`ardea describe {found.id}{found.options}` shows them"
        with console.interruptible(f"{found.id}: its processes may have been ended, and are started again; {shows}"):
            chosen = found.restart(container, wait_secs)
        names = ", ".join(map(str, chosen))
        console.say(f"{found.id}: restarted container{'s' if len(chosen) > 1 else ''} {names}")


def _order(scheduler: Scheduler, name: str, verb: str, done: str) -> None:
    with scheduler.find(name) as found:
        with found.control() as control:
            control.ask(verb)
        console.say(f"{found.id} {done}")
