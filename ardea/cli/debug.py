"""``ardea debug``: what a component emits, live."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from ardea.cli import completion, console
from ardea.cli.console import Name
from ardea.cli.progress import Silence
from ardea.errors import Unreachable
from ardea.scheduler.control import ControlPort, story_lines
from ardea.scheduler.emits import emitted, tasks_of
from ardea.scheduler.schedulers import Handle, LogLine, Scheduler


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
    """The sample, as long as the topology runs; silence is told."""
    silence, something = Silence(target, time.monotonic()), False
    for row in emitted(found, control, target, heard, clock=time.monotonic):
        silence.look(time.monotonic(), heard=something)
        if row is not None:
            something = True
            yield f"{row.task} {row.text}"
