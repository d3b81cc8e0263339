"""Data goes to stdout, everything else to stderr; errors have one shape and one exit code each."""

from __future__ import annotations

import contextlib
import enum
import functools
import json
import math
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from ardea.cli import completion
from ardea.cli.streams import Unwritable
from ardea.errors import ArdeaError, ExitCode, escaped
from ardea.scheduler.home import DEFAULT
from ardea.scheduler.local import State

P = ParamSpec("P")

_WITHOUT_TERMINAL = 10_000
"""Columns."""

debug = False
"""Whether errors show their traceback; ``--debug`` sets it."""


class Output(enum.StrEnum):
    """What ``-o`` takes."""

    TABLE = "table"
    JSON = "json"


OutputOption = Annotated[Output, typer.Option("--output", "-o", help="The format of stdout.")]
StateOption = State
STATE = DEFAULT
Name = Annotated[str, typer.Argument(metavar="TOPOLOGY", help="A name or an id.", autocompletion=completion.topologies)]


def finite(seconds: float | None) -> float | None:
    """Of an option that takes seconds: the time to wait has an end.

    Raises:
        BadParameter: it is infinite, or NaN.
    """
    if seconds is not None and not math.isfinite(seconds):
        raise typer.BadParameter(f"{seconds} is no number of seconds")
    return seconds


class Screen(Console):
    """Text is data: nothing in it moves the cursor, changes a colour or turns the direction of what follows."""

    def __init__(self, **options: Any) -> None:
        """``options``: rich's."""
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """A string is escaped before a table measures it."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is printed passes here, cells of tables too; what rich itself says to the terminal stays."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=escaped(segment.text))


def out() -> Screen:
    """Where data goes.  A table that is piped is not cut."""
    return Screen(width=None if sys.stdout.isatty() else _WITHOUT_TERMINAL)


def err() -> Screen:
    """Where everything else goes."""
    return Screen(stderr=True)


def draws(screen: Console) -> bool:
    """Whether it can be drawn anew.  Where FORCE_COLOR is set, Rich takes whatever file it writes to for a terminal."""
    return screen.file.isatty() and screen.is_terminal and not screen.is_dumb_terminal


def indented(text: str) -> Text:
    """Further lines are: none of them can pass for a message of its own."""
    return Text(escaped(text).replace("\n", "\n  "))


def shown(text: str) -> str:
    """What a process has printed, as it may go to stdout: as it is, but escaped on a terminal."""
    return escaped(text) if sys.stdout.isatty() else text


def say(text: str, label: str = "", style: str = "") -> None:
    """One message on stderr; ``label`` begins it, and further lines are indented."""
    message = Text(f"{label}: " if label else "", style=style)
    message.append(indented(text))
    err().print(message, soft_wrap=True)


@contextlib.contextmanager
def interruptible(what: str) -> Iterator[None]:
    """``what`` becomes of that which this process waits for inside, and which an interrupt does not end."""
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted; {what}")
        raise


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
                _print_traceback(error)
            else:
                say("run `ardea --debug ...` for the traceback, and report it", "hint", "bold")
            raise typer.Exit(ExitCode.FAILED) from None

    return wrapped


def report(error: ArdeaError | OSError) -> int:
    """Prints ``error: ...`` and ``hint: ...``; returns the exit code."""
    if debug:
        _print_traceback(error)
    say(error.message if isinstance(error, ArdeaError) else str(error), "error", "bold red")
    if isinstance(error, ArdeaError):
        if error.hint:
            say(error.hint, "hint", "bold")
        return error.exit_code
    return ExitCode.FAILED


def _print_traceback(error: BaseException) -> None:
    sys.stderr.write(escaped("".join(traceback.format_exception(error))))
