"""``ardea update``: more or fewer tasks, other configuration or a new version of a topology that runs."""

from __future__ import annotations

import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ardea.cli import change, console, rollout, submission
from ardea.cli.console import Name, Output, OutputOption, StateOption
from ardea.cli.places import also_on_kubernetes
from ardea.cli.running import Running, running, same_version
from ardea.code import Code
from ardea.errors import UsageError
from ardea.plan.change import UpdateRequest
from ardea.plan.definition import Definition
from ardea.scheduler import keys
from ardea.scheduler.difference import difference
from ardea.scheduler.home import Home
from ardea.scheduler.processes import died_since
from ardea.scheduler.update import Change, Refused, Updating, Version, next_of, room
from ardea.state import StateManager, paths, records
from ardea.state.records import ExecutionState

UP_WITHIN = 60.0
_SHOWN_CAUSES = 4


@console.reports
@also_on_kubernetes(rollout.update)
def update(
    name: Name,
    file: Annotated[str | None, typer.Argument(metavar="[FILE[:Class]]", help="A new version's file.")] = None,
    parallelism: Annotated[
        list[str] | None,
        typer.Option("--component-parallelism", metavar="NAME:N", help="So many tasks of a component; repeatable."),
    ] = None,
    settings: submission.Settings = None,
    moving: Annotated[
        bool, typer.Option("--moves-keys", help="Rescale although what tasks keep in memory stays where it is.")
    ] = False,
    image: Annotated[str | None, typer.Option(help="Kubernetes: another image of all containers' pods.")] = None,
    path_in_image: Annotated[
        str | None, typer.Option("--path-in-image", metavar="PATH", help="Kubernetes: FILE is there; no code is sent.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option("--include", metavar="PATTERN", help="Kubernetes: more files to send.")
    ] = None,
    wait_secs: Annotated[
        float | None,
        typer.Option("--wait-secs", min=1, help="How long new processes may take to come up; 60, on Kubernetes 120."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change; change nothing.")] = False,
    output: OutputOption = Output.TABLE,
    request: Annotated[bool, typer.Option("--request", hidden=True, help="Ask for what stdin says.")] = False,
    state: StateOption = console.STATE,
) -> None:
    """Change a running topology: its parallelism, configuration or code.

    Its spouts pause, what is on its way is processed, then it goes on with the new plan.  Can be repeated.
    """
    if image or path_in_image or include:
        raise UsageError(
            "--image, --path-in-image and --include are for topologies on Kubernetes",
            hint="-n NAMESPACE says where it runs",
        )
    home = Home(state)
    with running(name, home) as found:
        same_version(found.topology, "update")
        if request:
            Updating(found.client, rollout.read_request(), console.say).update()
            return
        asked = change.asked(parallelism, settings, moving=moving)
        folder = home.folder(found.topology.id)
        fresh = change.code_of(file) if file is not None else None
        if file is not None and fresh is not None:
            asked = replace(asked, version=Version(location=str(Path(file).absolute()), code=fresh.digest))
        present, next_ = _plans(found, asked, folder)
        if dry_run:
            change.show(difference(present, next_), output)
            return
        if fresh is not None:
            fresh.write(folder)
        made = _made(present, next_, home, UP_WITHIN if wait_secs is None else wait_secs)
        began = time.time()
        try:
            Updating(found.client, made, console.say).update()
        except Refused as refused:
            causes = died_since(folder, began)[:_SHOWN_CAUSES]
            raise Refused("\n".join((refused.message, *causes)), hint=refused.hint) from refused
    console.say(f"{found.topology.id} works by the new plan; `ardea describe {name}` shows it")


def _plans(found: Running, asked: Change, folder: Path) -> tuple[Definition, Definition]:
    """The plan in force, and the one that is asked for, of the code that is kept in the topology's folder."""
    present, half_done = _present(found.state, found.topology.id)
    location, code = present.location, None
    if asked.version is not None:
        location = asked.version.location
    else:
        code = Code.read(folder, present.code)
    return present, next_of(present, asked, lambda config: change.build(location, config, code), half_done=half_done)


def _made(present: Definition, next_: Definition, home: Home, patience: float) -> UpdateRequest:
    """The request; the keys of new containers lie where their processes look for them."""
    folder = home.folder(present.topology)
    room(present, next_)
    next_, fresh = keys.issue(next_, keys.read(folder, keys.lacking(next_)))
    keys.write(folder, fresh)
    return UpdateRequest(secrets.token_hex(8), next_, present.epoch, patience)


def _present(state: StateManager, topology: str) -> tuple[Definition, bool]:
    """The plan in force, and whether an update to it is half done."""
    path, execution = paths.physical_plan(topology), paths.execution_state(topology)
    present = Definition.unpacked(state.get(path).data, path)
    return present, records.decode(state.get(execution).data, ExecutionState, execution).switch is not None
