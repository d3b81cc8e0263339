"""The verbs for one topology, wherever it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from ardea.cli import console
from ardea.cli.console import Name
from ardea.scheduler.schedulers import Scheduler

DRAIN_SECS = 10.0
BACK_WITHIN = 60.0


def logs(
    scheduler: Scheduler,
    name: Name,
    selection: Annotated[
        str | None, typer.Argument(metavar="COMPONENT[:INDEX]", help="A component, one of its tasks, or a process.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the topology has ended.")] = False,
) -> None:
    """Print the logs of a topology that runs, or of one of the last twenty that ran."""
    with scheduler.logs(name) as found:
        several = selection is None or len(found.names(selection)) != 1
        for line in found.lines(selection, follow=follow):
            if line is not None:
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
        float, typer.Option("--wait-secs", min=0, help="How long open tuples may take to finish.")
    ] = DRAIN_SECS,
) -> None:
    """End a topology and forget it; its logs stay.

    Its spouts stop, open tuples may finish, then its processes end.  Can be repeated.
    """
    scheduler.kill(name, wait_secs, console.say)


def restart(
    scheduler: Scheduler,
    name: Name,
    container: Annotated[
        int | None, typer.Option(min=0, help="Only this container; 0 is the master's.  Default: all.")
    ] = None,
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=0, help="How long to wait until everything is back.")
    ] = BACK_WITHIN,
) -> None:
    """Restart the processes of one container, or of all.

    The topology goes on; tuples that were open are replayed.
    """
    with scheduler.find(name) as found:
        chosen = found.restart(container, wait_secs)
        names = ", ".join(map(str, chosen))
        console.say(f"{found.id}: restarted container{'s' if len(chosen) > 1 else ''} {names}")


def _order(scheduler: Scheduler, name: str, verb: str, done: str) -> None:
    with scheduler.find(name) as found:
        with found.control() as control:
            control.ask(verb)
        console.say(f"{found.id} {done}")
