"""``ardea update``: more or fewer tasks, other configuration or a new version of a topology that runs."""

from __future__ import annotations

from typing import Annotated

import typer

from ardea.cli import change, completion, console, submission
from ardea.cli.console import Name, Output, OutputOption, finite
from ardea.scheduler.schedulers import Scheduler


def update(
    scheduler: Scheduler,
    name: Name,
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE[:Class]]", help="The file of a new version; default: the present one."),
    ] = None,
    parallelism: Annotated[
        list[str] | None,
        typer.Option(
            "--component-parallelism",
            metavar="NAME:N",
            help="The number of tasks of a component; repeatable.",
            autocompletion=completion.parallelism,
        ),
    ] = None,
    settings: submission.Settings = None,
    moving: Annotated[
        bool,
        typer.Option(
            "--moves-keys", help="Rescale although what tasks keep for their keys does not move with the keys."
        ),
    ] = False,
    dropping: Annotated[
        bool, typer.Option("--drop-state", help="Leave behind state that the topology does not declare any more.")
    ] = False,
    wait_secs: Annotated[
        float | None,
        typer.Option(
            "--wait-secs",
            min=1,
            callback=finite,
            help="How long new processes may take to come up; 60, on Kubernetes 120.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; change nothing.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Change a running topology: its parallelism, configuration or code.

    Its spouts pause, open tuples are processed, then the topology goes on with the new plan.  Can be repeated.
    """
    with scheduler.find(name) as found:
        asked = change.asked(parallelism, settings, moving=moving, dropping=dropping)
        with submission.authors_prints():
            made = found.update(asked, file)
        with made:
            if dry_run:
                change.show(made.difference, output)
                return
            shows = f"`ardea describe {name}{found.options}` shows it"
            with console.interruptible(f"the update may go on, or be half done: {shows}, the same again finishes it"):
                made.apply(scheduler.start_secs if wait_secs is None else wait_secs, console.say)
        console.say(f"{found.id} works by the new plan; {shows}")
