"""``ardea ui``: the console of one place, for the person at this machine."""

from __future__ import annotations

import contextlib
import os
import sys
import webbrowser
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ardea.cli import completion, console, where
from ardea.errors import UserError
from ardea.scheduler.registry import Place

if TYPE_CHECKING:
    from ardea.console.beside import Beside

_Url = Annotated[
    str | None,
    typer.Option(metavar="URL", envvar="ARDEA_CONSOLE_PROMETHEUS", help="A Prometheus, for charts of hours and days."),
]
_Token = Annotated[
    Path | None,
    typer.Option(metavar="FILE", envvar="ARDEA_CONSOLE_PROMETHEUS_TOKEN", help="The token that it asks for."),
]


def ui(
    place: Place,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[TOPOLOGY]", help="The one that is shown first.", autocompletion=completion.topologies),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Where it listens, on loopback only; 0: any free port.")
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the link in a browser.")] = True,
    view_only: Annotated[bool, typer.Option("--view-only", help="Let nobody act, or read logs and rows.")] = False,
    prometheus: _Url = None,
    prometheus_token: _Token = None,
) -> None:
    """Show topologies in a browser until Ctrl-C.

    Prints a link. Anybody who has the link may look and act.
    """
    with _installed():
        from ardea.console import serving, tokens  # what other verbs do not need
        from ardea.console.prometheus import Prometheus
    knows_more = Prometheus(prometheus, prometheus_token) if prometheus else None
    if name is not None:
        with place.open() as scheduler, scheduler.find(name):
            pass  # NotFound now, and not in the browser
    made = tokens.Tokens.fresh(act=not view_only)
    with serving.listen(serving.LOOPBACK, port) as opened:
        shown = serving.link(opened, made.act or made.view, name)

        def ready() -> None:
            print(shown, flush=True)  # noqa: T201
            console.say("open this link; Ctrl-C ends the console, and nothing else")
            if browser and _has_screen():
                webbrowser.open(shown)

        serving.serve(place, opened, made, tokens.Hosts(), ready, knows_more)


def beside(state: str) -> Beside:
    """The console of a state directory, for `ardea run --ui`.

    Raises:
        UserError: what it needs is not installed.
        ClusterError: it cannot listen.
    """
    with _installed():
        from ardea.console.beside import Beside  # what a run without it does not need
    return Beside(Place(where.DEFAULT, {"state": state}))


@contextlib.contextmanager
def _installed() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"the console needs {error.name}, which is not installed", hint="pip install 'ardea[console]'"
        ) from error


def _has_screen() -> bool:
    """Whether a browser would have a window of its own; one of the terminal's would hold the console up."""
    return sys.platform != "linux" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
