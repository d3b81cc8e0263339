"""``ardea debug``: what a component emits, live."""

from __future__ import annotations

import contextlib
import difflib
import time
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from ardea.cli import completion, console
from ardea.cli.console import Name
from ardea.cli.progress import Silence
from ardea.errors import NotFound, Unreachable, UserError
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.control import ControlPort, story_lines
from ardea.scheduler.schedulers import Handle, LogLine, Scheduler

LASTS = 15
"""Seconds that the tasks go on logging when this command is gone."""
RENEW_EVERY = 5.0


def debug(
    scheduler: Scheduler,
    name: Name,
    target: Annotated[
        str,
        typer.Argument(
            metavar="COMPONENT[:INDEX]",
            help="A component, or one of its tasks (from 0).",
            autocompletion=completion.components,
        ),
    ],
    lines: Annotated[int, typer.Option("--lines", min=0, help="End after so many lines; 0: only with Ctrl-C.")] = 0,
) -> None:
    """Show a sample of what a component emits, until Ctrl-C.

    At most ten lines a second and task.
    """
    with scheduler.find(name) as found:
        found.require_running()
        wanted, tasks = tasks_of(found.definition(), target, emit=True)
        with scheduler.logs(found.id) as logs:
            selection = tasks.get(wanted, wanted)
            heard = logs.lines(selection, follow=True, tail=0)
            try:
                with found.control() as control:
                    _tell_stories(control, tasks)
                    for number, line in enumerate(_emitted(found, control, wanted, heard), 1):
                        print(console.shown(line), flush=True)  # noqa: T201
                        if number == lines:
                            return
            except KeyboardInterrupt:
                return  # the way to leave it
        console.say(f"{found.id} does not run any more; `ardea describe {found.id}{found.options}` says why")


def _tell_stories(control: ControlPort, tasks: Iterable[str]) -> None:
    """A master that is being started again has none; the sample waits for it."""
    with contextlib.suppress(Unreachable):
        for text in story_lines(control.ask("status", stories="yes"), tasks):
            console.say(text)


def _emitted(found: Handle, control: ControlPort, target: str, heard: Iterator[LogLine | None]) -> Iterator[str]:
    """The sample, as long as the topology runs."""
    silence, something, renew_at = Silence(target, time.monotonic()), False, 0.0
    for line in heard:
        now = time.monotonic()
        silence.look(now, heard=something)
        if now >= renew_at:
            renew_at = now + RENEW_EVERY
            try:
                control.ask("debug", target=target, seconds=str(LASTS))
            except Unreachable:
                if not found.runs():
                    return
        if line is not None:
            _, mark, said = line.text.partition(f" INFO {line.label}.emits: ")
            if mark:
                something = True
                yield f"{line.label} {said}"


def tasks_of(definition: Definition, target: str, *, emit: bool) -> tuple[str, dict[str, str]]:
    """What the order names; and the tasks that it concerns, with what selects their logs.  ``emit``: they have to."""
    packing = packing_from_bytes(definition.packing)
    wanted = target.replace(":", "-")
    chosen = {i.name: i for i in packing.instances if wanted in (i.component, i.name)}
    if not chosen:
        names = {name for i in packing.instances for name in (i.component, i.name)}
        near = difflib.get_close_matches(wanted, names, n=1)
        components = ", ".join(component.name for component in definition.shape.components)
        raise NotFound(
            f"{definition.topology} has no component or task {target}; its components are {components}",
            hint=f"did you mean {near[0]!r}?" if near else None,
        )
    component = next(iter(chosen.values())).component
    if emit and not next(c for c in definition.shape.components if c.name == component).streams:
        raise UserError(f"{component} of {definition.topology} emits nothing: it declares no outputs")
    return wanted, {name: f"{i.component}:{i.index}" for name, i in chosen.items()}
