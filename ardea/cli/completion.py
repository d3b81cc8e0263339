"""What a shell completes by asking a scheduler: the names of topologies and of their components."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable

import typer

from ardea.cli.where import scheduler_of
from ardea.scheduler.schedulers import Scheduler

WITHIN = 2.0
"""Seconds that somebody waits after TAB; a place that does not answer within them completes nothing."""


def topologies(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Names of topologies that begin so, and the state of each."""
    return _completed(ctx, incomplete, lambda scheduler: [(each.name, each.state) for each in scheduler.topologies()])


def components(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Names of the components of the topology that is named already, and the number of tasks of each."""

    def found(scheduler: Scheduler) -> Iterable[tuple[str, str]]:
        # Behind an option that has no value yet, the words before are not arguments yet.
        with scheduler.find(ctx.params.get("name") or ctx.args[0]) as topology:
            shape = topology.definition().shape
        return [(each.name, f"{each.tasks} task{'' if each.tasks == 1 else 's'}") for each in shape.components]

    return _completed(ctx, incomplete, found)


def parallelism(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The same names, with the colon that a number follows."""
    return [(f"{name}:", tasks) for name, tasks in components(ctx, incomplete)]


def _completed(
    ctx: typer.Context, incomplete: str, ask: Callable[[Scheduler], Iterable[tuple[str, str]]]
) -> list[tuple[str, str]]:
    """What is found in time; whatever goes wrong completes nothing, and says nothing into a line that is typed."""
    found: dict[str, str] = {}

    def look() -> None:
        with contextlib.suppress(Exception), scheduler_of(ctx) as scheduler:
            found.update({name: said for name, said in ask(scheduler) if name.startswith(incomplete)})

    asking = threading.Thread(target=look, name="completion", daemon=True)
    asking.start()
    asking.join(WITHIN)
    return list(found.items())
