"""The ``ardea`` command: its verbs, and the options that all of them share."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ardea import __version__
from ardea.cli import (
    bundle,
    console,
    debug,
    describe,
    doctor,
    init,
    inspecting,
    listing,
    reference,
    run,
    savepoint,
    submit,
    top,
    topologies,
    ui,
    update,
)
from ardea.cli.console import Output, OutputOption
from ardea.cli.where import on_topologies

_ON_TOPOLOGIES: dict[str, Callable[..., None]] = {
    "list": listing.list_topologies,
    "describe": describe.describe,
    "top": top.top,
    "ui": ui.ui,
    "debug": debug.debug,
    "debug stacks": inspecting.stacks,
    "debug profile": inspecting.profile,
    "debug bundle": bundle.bundle,
    "logs": topologies.logs,
    "activate": topologies.activate,
    "deactivate": topologies.deactivate,
    "update": update.update,
    "restart": topologies.restart,
    "savepoint": savepoint.savepoint,
    "snapshots": savepoint.snapshots,
    "kill": topologies.kill,
    "doctor": doctor.doctor,
}
VERBS = ("init", "run", "submit", *(verb for verb in _ON_TOPOLOGIES if verb != "doctor"), "config", "doctor", "version")


class Verbs(TyperGroup):
    """Schedulers are loaded only for those verbs that ask one."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """In the order of the help."""
        return list(VERBS)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """A shell completes one word at a time."""
        return [item for item in super().shell_complete(ctx, incomplete) if " " not in item.value]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Some verbs have two words."""
        if len(args) > 1 and (verb := " ".join(args[:2])) in _ON_TOPOLOGIES:
            return verb, self.get_command(ctx, verb), args[2:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb; None: there is none of that name."""
        if (verb := _ON_TOPOLOGIES.get(cmd_name)) is None:
            return super().get_command(ctx, cmd_name)
        made = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        placed = on_topologies(verb, updates=cmd_name == "update", closed=cmd_name == "ui")
        made.command(cmd_name)(console.reports(placed))
        return typer.main.get_command(made)


app = typer.Typer(
    cls=Verbs,
    name="ardea",
    help="Run and watch topologies.  Data goes to stdout, everything else to stderr; docs/cli.md lists the exit codes.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:
    if asked:
        print(__version__)  # noqa: T201
        raise typer.Exit


@app.callback()
def options(
    traceback: Annotated[
        bool, typer.Option("--debug", envvar="ARDEA_DEBUG", help="Show the traceback of an error.")
    ] = False,
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What stands before the verb."""
    console.debug = traceback


@console.reports
def version(output: OutputOption = Output.TABLE) -> None:
    """Print the version."""
    if output is Output.JSON:
        console.print_json({"ardea": __version__, "python": platform.python_version()})
    else:
        print(__version__)  # noqa: T201


app.command("init")(init.init)
app.command("run")(run.run)
app.add_typer(submit.app, name="submit")
app.command("config")(reference.config)
app.command("version")(version)
