"""``ardea debug``: what a component emits, live."""

from __future__ import annotations

import difflib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from ardea.cli import console, remote
from ardea.cli.console import Name, StateOption
from ardea.cli.logs import Tail
from ardea.cli.places import also_on_kubernetes
from ardea.cli.progress import Silence
from ardea.cli.running import Running, running
from ardea.errors import NotFound, Unreachable, UsageError, UserError
from ardea.plan.definition import Definition
from ardea.plan.names import container_name
from ardea.plan.wire import packing_from_bytes
from ardea.scheduler.home import Home
from ardea.state.topologies import status as status_of
from ardea.supervision.records import read_status

LASTS = 15
"""Seconds that the tasks go on logging when this command is gone."""
RENEW_EVERY = 5.0
LOOK_EVERY = 0.2
STACK_WITHIN = 5.0


@console.reports
@also_on_kubernetes(remote.debug)
def debug(
    name: Name,
    target: Annotated[
        str, typer.Argument(metavar="COMPONENT[:INDEX]", help="A component, or one of its tasks (from 0).")
    ],
    lines: Annotated[int, typer.Option("--lines", min=0, help="End after so many lines; 0: go on.")] = 0,
    stack: Annotated[bool, typer.Option("--stack", help="Print the stack of every thread instead.")] = False,
    shell: Annotated[bool, typer.Option("--shell", help="Kubernetes: open a shell beside the task instead.")] = False,
    order: Annotated[bool, typer.Option("--order", hidden=True, help="Order the sample, read nothing.")] = False,
    state: StateOption = console.STATE,
) -> None:
    """Show a sample of what a component emits, until Ctrl-C.

    At most ten lines a second and task.
    """
    if shell:
        raise UsageError("--shell is for topologies on Kubernetes", hint="-n NAMESPACE says where it runs")
    home = Home(state)
    with running(name, home) as found:
        folder = home.folder(found.topology.id)
        wanted, logs = _logs(Definition.read(folder / "definition"), target, folder)
        if order:
            found.client.ask("debug", target=wanted, seconds=str(LASTS))
            return
        if stack:
            for task, tail in logs.items():
                _print_stack(task, tail)
            return
        for tail in logs.values():
            tail.skip()
        try:
            for number, line in enumerate(_emitted(found, wanted, logs), 1):
                print(console.shown(line), flush=True)  # noqa: T201
                if number == lines:
                    return
        except KeyboardInterrupt:
            return  # the way to leave it
        finally:
            for tail in logs.values():
                tail.close()
        console.say(f"{found.topology.id} does not run any more; `ardea describe {found.topology.id}` says why")


def _print_stack(task: str, tail: Tail) -> None:
    """SIGUSR1 makes the process write the stack of every thread to its log."""
    tail.skip()
    folder = tail.path.parents[1]
    pid = read_status(folder).get("processes", {}).get(task, {}).get("pid")
    if pid is None:
        raise Unreachable(f"{task} does not run now", hint="`ardea describe` says why")
    os.kill(pid, signal.SIGUSR1)
    print(f"{task} (pid {pid}):")  # noqa: T201
    deadline, last = time.monotonic() + STACK_WITHIN, ""
    while time.monotonic() < deadline and not last.startswith("Current thread"):
        for line in tail.lines():
            print(console.shown(f"  {line}"))  # noqa: T201
            last = line if line.startswith("Current thread") else last
        time.sleep(LOOK_EVERY)
    for line in tail.lines():
        print(console.shown(f"  {line}"))  # noqa: T201
    tail.close()


def _emitted(found: Running, target: str, logs: dict[str, Tail]) -> Iterator[str]:
    """The sample, as long as the topology runs."""
    renew_at = time.monotonic()
    silence, heard = Silence(target, renew_at), False
    while True:
        now = time.monotonic()
        silence.look(now, heard=heard)
        if now >= renew_at:
            renew_at = now + RENEW_EVERY
            try:
                found.client.ask("debug", target=target, seconds=str(LASTS))
            except Unreachable:
                if not status_of(found.state, found.topology.id).running:
                    return
        for task, tail in logs.items():
            for line in tail.lines():
                _, mark, said = line.partition(f" INFO {task}.emits: ")
                if mark:
                    heard = True
                    yield f"{task} {said}"
        time.sleep(LOOK_EVERY)


def _logs(definition: Definition, target: str, folder: Path) -> tuple[str, dict[str, Tail]]:
    """(what the order names, the log of each task that it concerns)."""
    packing = packing_from_bytes(definition.packing)
    wanted = target.replace(":", "-")  # as `ardea logs` has it
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
    if not next(c for c in definition.shape.components if c.name == component).streams:
        raise UserError(f"{component} of {definition.topology} emits nothing: it declares no outputs")
    return wanted, {
        task: Tail(folder / container_name(packing.container_of(i.task)) / "logs" / f"{task}.log")
        for task, i in chosen.items()
    }
