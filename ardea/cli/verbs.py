"""The ``ardea`` command: its verbs, and the options that all of them share."""

from __future__ import annotations

import platform
from typing import Annotated

import typer

from ardea import __version__
from ardea.cli import console, debug, describe, doctor, listing, reference, run, submit, top, topologies, update
from ardea.cli.console import Output, OutputOption

app = typer.Typer(
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


app.command("run")(run.run)
app.add_typer(submit.app, name="submit")
app.command("list")(listing.list_topologies)
app.command("describe")(describe.describe)
app.command("top")(top.top)
app.command("debug")(debug.debug)
app.command("logs")(topologies.logs)
app.command("activate")(topologies.activate)
app.command("deactivate")(topologies.deactivate)
app.command("update")(update.update)
app.command("restart")(topologies.restart)
app.command("kill")(topologies.kill)
app.command("config")(reference.config)
app.command("doctor")(doctor.doctor)
app.command("version")(version)
