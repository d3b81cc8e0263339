"""The route of what is handed on: all that is known of a topology, in one archive (docs/debugging.md, "A bundle")."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import BinaryIO

from starlette.requests import Request
from starlette.responses import Response

from ardea.console.desk import Desk, Parameter, Route, whole
from ardea.console.downloads import Download
from ardea.console.tokens import Right
from ardea.plan.resource import MIB
from ardea.scheduler.bundle import LOG_MIB, MOST_LOG_MIB, Bundle, Limits

GZIP = "application/gzip"


async def _bundle(desk: Desk, request: Request) -> Response:
    limits = Limits(log_bytes=MIB * whole(request, "log_mib", LOG_MIB, 1, MOST_LOG_MIB))
    topology = (await desk.topology(request.path_params["name"])).id
    with contextlib.ExitStack() as held:
        held.enter_context(desk.alone("bundle", "a bundle is being made"))
        opening = partial(Bundle, desk.scheduler, topology, limits)
        made = await asyncio.get_running_loop().run_in_executor(desk.threads, opening)
        held.callback(made.close)
        return Download(made.file_name, GZIP, partial(_write, made, held.pop_all()))


def _write(made: Bundle, held: contextlib.ExitStack, out: BinaryIO) -> None:
    """On a thread; another bundle may be made when this one is given up, too."""
    with held:
        made.write(out)


ROUTES = (
    Route(
        path="/topologies/{name}/bundle",
        right=Right.ACT,
        answer=_bundle,
        gives=(),
        file=GZIP,
        about="An archive of all that is known of it, without secrets, for somebody else",
        parameters=(
            Parameter(
                "log_mib",
                "MiB of each log, the newest",
                {"type": "integer", "minimum": 1, "maximum": MOST_LOG_MIB, "default": LOG_MIB},
            ),
        ),
    ),
)
