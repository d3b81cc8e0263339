"""The options of ``update``, and what becomes of them, wherever the topology runs."""

from __future__ import annotations

import msgspec
from rich.table import Table

from ardea.cli import console, submission
from ardea.cli.console import Output
from ardea.errors import UsageError
from ardea.scheduler.difference import Difference
from ardea.scheduler.next_definition import Change

_DIGITS = 20
"""Python reads no number of thousands of them."""


def asked(parallelism: list[str] | None, settings: list[str] | None, *, moving: bool, dropping: bool) -> Change:
    """What the options mean, but for a new version."""
    tasks = dict(map(_count, parallelism or ()))
    overrides = submission.checked(submission.parsed(settings))
    return Change(parallelism=tasks, overrides=overrides, moves_keys=moving, drop_state=dropping)


def show(found: Difference, output: Output) -> None:
    """What ``--dry-run`` prints."""
    if output is Output.JSON:
        console.print_json(msgspec.to_builtins(found))
        return
    table = Table("Component", "", "Tasks", box=None, pad_edge=False)
    for each in found.components:
        before, after = each.tasks
        table.add_row(each.component, each.what, str(after) if before == after else f"{before} -> {after}")
    console.out().print(table)
    whole = "every instance and metrics manager" if found.restarted else ""
    for title, names in (
        ("configuration", ", ".join(found.configuration)),
        ("start", ", ".join(found.started)),
        ("end", ", ".join(found.stopped)),
        ("move, and so start again", ", ".join(found.moved)),
        ("start again", whole),
        ("containers added", ", ".join(map(str, found.containers_added))),
        ("containers removed", ", ".join(map(str, found.containers_removed))),
        ("containers replaced", ", ".join(map(str, found.containers_replaced))),
    ):
        if names:
            console.out().print(f"{title}: {names}", soft_wrap=True)


def _count(text: str) -> tuple[str, int]:
    component, colon, number = text.rpartition(":")
    if not (colon and component and number.isdecimal() and len(number) < _DIGITS):
        raise UsageError(f"--component-parallelism takes NAME:N, not {text!r}")
    return component, int(number)
