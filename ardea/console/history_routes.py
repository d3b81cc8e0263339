"""Routes of samples, and of exceptions of authors' code."""

from __future__ import annotations

import math

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from ardea.console.desk import Desk, Parameter, Route, sent, whole
from ardea.console.documents import Exceptions, History, reading
from ardea.console.problems import Refused
from ardea.console.readings import Key
from ardea.console.tokens import Right
from ardea.metrics import Samples
from ardea.metrics.samples import MOST_NAMES

MOST_HOURS = 31 * 24


async def _history(desk: Desk, request: Request) -> Response:
    names = sorted({name for name in request.query_params.get("names", "").split(",") if name})
    if len(names) > MOST_NAMES:
        raise Refused(400, f"names takes at most {MOST_NAMES} components and tasks, not {len(names)}")
    if any(" " in name for name in names):
        raise Refused(400, "no component or task has a blank in its name")
    since, hours = _seconds(request), whole(request, "hours", 0, 1, MOST_HOURS)
    if hours and not desk.longer:
        raise Refused(
            400,
            "the master keeps fifteen minutes, and no Prometheus is named",
            hint="start the console with --prometheus",
        )
    topology = (await desk.topology(request.path_params["name"])).id
    key = (
        Key("past", f"{topology} {hours} {','.join(names)}")
        if hours
        else Key("history", f"{topology} {','.join(names)}")
    )
    look = await desk.asker.fresh(key)
    samples: Samples = look.said
    told = asdict(samples.after(since))
    return sent(request, History(**told, longer=desk.longer, reading=reading(look, desk.asker.epoch)))


async def _exceptions(desk: Desk, request: Request) -> Response:
    _, look = await desk.look("exceptions", request.path_params["name"])
    return sent(request, Exceptions(exceptions=look.said, reading=reading(look, desk.asker.epoch)))


def _seconds(request: Request) -> float:
    text = request.query_params.get("since", "0")
    try:
        since = float(text)
    except ValueError:
        since = math.nan
    if not 0.0 <= since < math.inf:
        raise Refused(400, f"since takes Unix seconds, not {text[:50]!r}")
    return since


ROUTES = (
    Route(
        path="/topologies/{name}/history",
        right=Right.VIEW,
        answer=_history,
        gives=(History,),
        about="What components and tasks did in the last fifteen minutes, or hours, a sample each five seconds or more",
        parameters=(
            Parameter("names", "components and tasks, with commas between; none: all components", {"type": "string"}),
            Parameter("since", "Unix seconds; later samples only", {"type": "number", "minimum": 0, "default": 0}),
            Parameter(
                "hours",
                "of Prometheus; without it: the fifteen minutes that the master keeps",
                {"type": "integer", "minimum": 1, "maximum": MOST_HOURS},
            ),
        ),
    ),
    Route(
        path="/topologies/{name}/exceptions",
        right=Right.ACT,
        answer=_exceptions,
        gives=(Exceptions,),
        about="What authors' code has raised since its master began, in groups by type and stack",
    ),
)
