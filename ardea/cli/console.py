"""Data goes to stdout, everything else to stderr; errors have one shape and one exit code each."""

from __future__ import annotations

import enum
import functools
import json
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console
from rich.text import Text

from ardea.cli.streams import Unwritable
from ardea.errors import ArdeaError, ExitCode
from scheduler.home import DEFAULT
from scheduler.machine import State

P = ParamSpec("P")

_WITHOUT_TERMINAL = 10_000
"""Columns."""

debug = False
"""Whether errors show their traceback; ``--debug`` sets it."""


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="What goes to stdout.")]
StateOption = State
STATE = DEFAULT
Name = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="A name or an id.")]


def out() -> Console:
    """Where data goes.  A table that is piped is not cut."""
    return Console(width=None if sys.stdout.isatty() else _WITHOUT_TERMINAL)


def err() -> Console:
    """Where everything else goes."""
    return Console(stderr=True)


def say(text: str, label: str = "", style: str = "") -> None:
    """One message on stderr; ``label`` begins it, and further lines are indented."""
    message = Text(f"{label}: " if label else "", style=style)
    message.append(Text(text.replace("\n", "\n  "), style=""))
    err().print(message, soft_wrap=True)


def print_json(value: Any) -> None:
    """One document on stdout."""
    print(json.dumps(value, indent=2, default=str))  # noqa: T201


def reports(command: Callable[P, None]) -> Callable[P, None]:
    """Turns what a verb raises into a message and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, Unwritable):
            raise
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except (ArdeaError, OSError) as error:
            raise typer.Exit(report(error)) from None
        except Exception as error:
            say(f"{type(error).__name__}: {error}", "error: a fault of Ardea itself", "bold red")
            if debug:
                traceback.print_exc()
            else:
                say("run `ardea --debug ...` for the traceback, and report it", "hint", "bold")
            raise typer.Exit(ExitCode.FAILED) from None

    return wrapped


def report(error: ArdeaError | OSError) -> int:
    """Prints ``error: ...`` and ``hint: ...``; returns the exit code."""
    if debug:
        traceback.print_exception(error)
    say(error.message if isinstance(error, ArdeaError) else str(error), "error", "bold red")
    if isinstance(error, ArdeaError):
        if error.hint:
            say(error.hint, "hint", "bold")
        return error.exit_code
    return ExitCode.FAILED
