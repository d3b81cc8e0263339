"""A sample of what a component emits, live: the master orders it, and the logs of the tasks have it (docs/cli.md)."""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ardea import logs
from ardea.errors import NotFound, Unreachable, UserError
from ardea.plan.definition import Definition
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.control import ControlPort
from ardea.scheduler.schedulers import Handle, LogLine

LASTS = 15
"""Seconds that the tasks go on logging when whoever asked is gone."""
RENEW_EVERY = 5.0


class Emitted(NamedTuple):
    """``text``: the stream, the shortened values of a row, and how many others were passed over before it."""

    task: str
    text: str


def emitted(
    found: Handle,
    control: ControlPort,
    target: str,
    heard: Iterator[LogLine | None],
    *,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Emitted | None]:
    """The sample, as long as the topology runs; None now and then, also while nothing is emitted.

    Args:
        found: the topology.
        control: of its master; one that is being started again is asked again.
        target: a component or a task, see :func:`tasks_of`.
        heard: the lines that come from now on, of their logs.
        clock: steady seconds.

    Raises:
        ArdeaError: the master refuses, or the logs cannot be read.
    """
    renew_at = 0.0
    for line in heard:
        if (now := clock()) >= renew_at:
            renew_at = now + RENEW_EVERY
            try:
                control.ask("debug", target=target, seconds=str(LASTS))
            except Unreachable:
                if not found.runs():
                    return
        said = line and logs.message_of(line.text, f"{line.label}.emits")
        yield Emitted(line.label, said) if line and said else None


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
