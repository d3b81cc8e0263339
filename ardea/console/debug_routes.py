"""Routes of one task's threads: their stacks now, and a profile of some seconds."""

from __future__ import annotations

import asyncio
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ardea.console.desk import Desk, Parameter, Route, sent, whole
from ardea.console.tokens import Right
from ardea.protocol.inspection import MOST_SECONDS, Inspection, What
from ardea.scheduler.inspection import inspect

SECONDS = 30


async def _stacks(desk: Desk, request: Request) -> Response:
    return await _inspected(desk, request, "stacks", 0)


async def _profile(desk: Desk, request: Request) -> Response:
    return await _inspected(desk, request, "profile", whole(request, "seconds", SECONDS, 1, MOST_SECONDS))


async def _inspected(desk: Desk, request: Request, what: What, seconds: int) -> Response:
    topology = (await desk.topology(request.path_params["name"])).id
    task = request.path_params["task"].replace(":", "-")
    look = partial(_look, desk, topology, task, what, seconds)
    with desk.alone(f"{topology}/{task}"):
        return sent(request, await asyncio.get_running_loop().run_in_executor(desk.threads, look))


def _look(desk: Desk, topology: str, task: str, what: What, seconds: int) -> Inspection:
    """On a thread, which it holds until the task has answered, or is too late."""
    with desk.scheduler.find(topology) as found, found.control() as control:
        return inspect(control, task, what, seconds)


ROUTES = (
    Route(
        path="/topologies/{name}/tasks/{task}/stacks",
        right=Right.ACT,
        answer=_stacks,
        gives=(Inspection,),
        about="The stack of every thread of a task",
    ),
    Route(
        path="/topologies/{name}/tasks/{task}/profile",
        right=Right.ACT,
        answer=_profile,
        gives=(Inspection,),
        about="Where the threads of a task spend their time, as a tree; the answer comes when the time is over",
        parameters=(
            Parameter(
                "seconds",
                "how long it looks",
                {"type": "integer", "minimum": 1, "maximum": MOST_SECONDS, "default": SECONDS},
            ),
        ),
    ),
)
