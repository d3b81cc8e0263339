"""``ardea doctor``: whether all that a scheduler needs is in order, and what can be removed."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from ardea.cli import console
from ardea.cli.console import Output, OutputOption
from ardea.errors import ExitCode
from ardea.scheduler.schedulers import Scheduler


def doctor(
    scheduler: Scheduler,
    prune: Annotated[bool, typer.Option("--prune", help="Remove what dead topologies have left in the state.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check that all is in order; exit 1 if it is not."""
    checks = list(scheduler.checks(prune=prune))
    if output is Output.JSON:
        console.print_json({"checks": [check._asdict() for check in checks]})
    else:
        table = Table("", "Check", "Found", box=None, pad_edge=False)
        for name, ok, found in checks:
            table.add_row("ok" if ok else "WRONG", name, found)
        console.out().print(table)
    if not all(check.ok for check in checks):
        raise typer.Exit(ExitCode.FAILED)
