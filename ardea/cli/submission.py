"""The options that ``run`` and ``submit`` share, and what becomes of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from ardea import config_check
from ardea.cli import console
from ardea.cli.console import Output
from ardea.errors import ConfigError, UsageError
from ardea.plan.definition import Begins
from ardea.scheduler.home import Home
from ardea.scheduler.local import METRICS_KEY
from ardea.scheduler.packing.report import as_json, as_table
from ardea.scheduler.submission import Submission
from ardea.snapshots.place import check_shown
from ardea.validation import wrong_name

Target = Annotated[str, typer.Argument(metavar="FILE[:Class]", help="The topology's file.")]
Containers = Annotated[int | None, typer.Option(min=1, help="The number of containers.")]
Name = Annotated[str | None, typer.Option(help="The topology's name.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a configuration key; repeatable.  `ardea config` lists the keys."
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from", metavar="FOLDER", help="Begin from the savepoint in this folder; `ardea savepoint` makes one."
    ),
]
DropState = Annotated[
    bool, typer.Option("--drop-state", help="With --from: leave behind state that the topology does not have.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the packing plan; start nothing.")]


def load(target: str, home: Home, given: dict[str, Any]) -> Submission:
    """Loads, checks and packs; ``given``: :func:`overrides`."""
    with authors_prints():
        return Submission.of(target, given, home.state_url)


def begins_of(folder: str | None, *, drop_state: bool) -> Begins | None:
    """What the two options say; UsageError for one without the other, UserError for an address with a password."""
    check_shown(folder, "--from")
    if drop_state and folder is None:
        raise UsageError("--drop-state is about a savepoint, and --from is not given")
    return None if folder is None else Begins(folder, drop_state)


def overrides(
    settings: list[str] | None, *, name: str | None, containers: int | None, metrics_port: int | None = None
) -> dict[str, Any]:
    """The configuration that the options make, which wins over the topology's."""
    given = {"topology.name": name, "topology.stmgrs": containers, METRICS_KEY: metrics_port}
    return checked(parsed(settings) | {key: value for key, value in given.items() if value is not None})


def parsed(settings: list[str] | None) -> dict[str, Any]:
    """What ``--set`` says."""
    try:
        return config_check.parse(settings or ())
    except ConfigError as error:
        raise UsageError(error.message) from error


def checked(given: dict[str, Any], where: str = "the command line") -> dict[str, Any]:
    """The same; what is wrong with it is said before the author's file is looked at, which is not at fault."""
    normal = config_check.validate(given, where)
    for problem in wrong_name(normal["topology.name"]) if "topology.name" in normal else ():
        raise ConfigError(f"{where}: {problem}")
    return given


@contextlib.contextmanager
def authors_prints() -> Iterator[None]:
    """Whatever the author's file prints while it is imported is no data of ours, however it does so."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)  # for what writes past sys.stdout: C code, and what it starts
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)


def show_plan(submission: Submission, output: Output) -> None:
    """What ``--dry-run`` prints."""
    if output is Output.JSON:
        console.print_json(as_json(submission.packing, submission.plan))
    else:
        console.out().print(as_table(submission.packing, submission.plan))
