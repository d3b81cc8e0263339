"""``ardea update``: more or fewer tasks, other configuration or a new version of a topology that runs."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from ardea import config, loader
from ardea.cli import console, submission
from ardea.cli.console import Name, StateOption
from ardea.cli.running import running
from ardea.errors import UserError
from ardea.plan import LogicalPlan
from ardea.plan.definition import Definition
from ardea.state import StateManager, paths, records
from ardea.state.records import ExecutionState
from scheduler import keys
from scheduler.home import Home
from scheduler.update import Updating, moves_keys, room, wanted

UP_WITHIN = 60.0


@console.reports
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
    wait_secs: Annotated[
        float, typer.Option("--wait-secs", min=1, help="How long new processes may take to come up.")
    ] = UP_WITHIN,
    state: StateOption = console.STATE,
) -> None:
    """Change a running topology: its parallelism, configuration or code.

    Its spouts pause, what is on its way is processed, then it goes on with the new plan.  Can be repeated.
    """
    home = Home(state)
    tasks, overrides = dict(map(_count, parallelism or ())), config.parse(settings or ())
    if "topology.name" in overrides:
        raise UserError("topology.name: a running topology cannot be renamed; nothing was changed")
    with running(name, home) as found:
        topology, folder = found.topology.id, home.folder(found.topology.id)
        present, half_done = _present(found.state, topology)
        location, config_now = present.location, {**present.config, **overrides}
        if file is not None:
            location = str(Path(file).absolute())
            config_now = {**present.config, "topology.name": present.shape.name, **overrides}
        # The same again, while it is half done, is no third version.
        rebuilt = config_now != present.config or (
            file is not None and not (half_done and location == present.location)
        )
        plan = _plan(location, config_now)
        if not (tasks or overrides or file or half_done):
            raise UserError(
                f"{topology}: nothing is to be changed", hint="give --component-parallelism, --set, or a new FILE"
            )
        next_ = wanted(present, plan, parallelism=tasks, location=location, config=config_now, rebuilt=rebuilt)
        left = [] if moving else moves_keys(present, next_, plan)
        if left:
            raise UserError(
                f"{', '.join(left)}: rows are grouped by keys, and what a task keeps in memory of a key does not move "
                "with it; nothing was changed",
                hint="--moves-keys does it even so; `rescalable = True` in the class says that nothing is lost",
            )
        room(present, next_)
        next_, fresh = keys.issue(next_)
        keys.write(folder, fresh)
        Updating(found.client, next_, present.epoch, console.say).update(wait_secs)
    console.say(f"{topology} works by the new plan; `ardea describe {name}` shows it")


def _count(text: str) -> tuple[str, int]:
    component, colon, number = text.rpartition(":")
    if not (colon and component and number.isdecimal()):
        raise typer.BadParameter(f"{text!r} is not NAME:N", param_hint="--component-parallelism")
    return component, int(number)


def _present(state: StateManager, topology: str) -> tuple[Definition, bool]:
    """The plan in force, and whether an update to it is half done."""
    path, execution = paths.physical_plan(topology), paths.execution_state(topology)
    present = Definition.unpacked(state.get(path).data, path)
    return present, records.decode(state.get(execution).data, ExecutionState, execution).switch is not None


def _plan(location: str, overrides: dict[str, object]) -> LogicalPlan:
    with contextlib.redirect_stdout(sys.stderr):  # whatever the author's file prints while it is imported
        return loader.load(location).plan(overrides)
