"""Routes of one task: a sample of what it emits, the stacks of its threads, and a profile of some seconds."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from time import monotonic as clock

from starlette.requests import Request
from starlette.responses import Response

from ardea.console.desk import Desk, Parameter, Route, sent, whole
from ardea.console.documents import Line, Log
from ardea.console.feeds import HELD_BYTES
from ardea.console.following import Lines, followed
from ardea.console.problems import LONGEST
from ardea.console.tokens import Right
from ardea.errors import ArdeaError, printable
from ardea.protocol.inspection import MOST_SECONDS, Inspection, What
from ardea.scheduler.emits import emitted, tasks_of
from ardea.scheduler.inspection import inspect

SECONDS = 30
ROWS, MOST_ROWS = 200, 1000
MOST_SAMPLED = 300
"""Seconds that a sample may take."""


async def _sample(desk: Desk, request: Request) -> Response:
    rows, seconds = whole(request, "rows", ROWS, 1, MOST_ROWS), whole(request, "seconds", SECONDS, 1, MOST_SAMPLED)
    topology = (await desk.topology(request.path_params["name"])).id
    target = request.path_params["task"]

    def check() -> None:
        with desk.scheduler.find(topology) as found:
            found.require_running()
            tasks_of(found.definition(), target, emit=True)

    lines = partial(_sampled, desk, topology, target, rows, seconds)
    return await followed(desk, f"the sample of {target} of {topology}", check, lines)


def _sampled(desk: Desk, topology: str, target: str, rows: int, seconds: int) -> Lines:
    """At most so many rows, seconds, and 256 KiB."""
    room, deadline = HELD_BYTES, clock() + seconds
    scheduler = desk.scheduler
    with scheduler.find(topology) as found, scheduler.logs(topology) as logs, found.control() as control:
        wanted, tasks = tasks_of(found.definition(), target, emit=True)
        heard = logs.lines(tasks.get(wanted, wanted), follow=True, tail=0)
        for row in emitted(found, control, wanted, heard):
            if row is None:
                yield None
            else:
                text = printable(row.text, LONGEST)
                yield Line(process=row.task, text=text)
                rows, room = rows - 1, room - len(text.encode(errors="replace"))
            if rows == 0 or room <= 0 or clock() >= deadline:
                return


async def _stacks(desk: Desk, request: Request) -> Response:
    return await _inspected(desk, request, "stacks", 0)


async def _profile(desk: Desk, request: Request) -> Response:
    return await _inspected(desk, request, "profile", whole(request, "seconds", SECONDS, 1, MOST_SECONDS))


async def _inspected(desk: Desk, request: Request, what: What, seconds: int) -> Response:
    topology = (await desk.topology(request.path_params["name"])).id
    task = request.path_params["task"].replace(":", "-")
    left = threading.Event()
    look = partial(_look, desk, topology, task, what, seconds, left)
    with desk.alone(f"{topology}/{task}", f"{topology}/{task} is being looked into"):
        try:
            return sent(request, await asyncio.get_running_loop().run_in_executor(desk.threads, look))
        finally:
            left.set()


def _look(desk: Desk, topology: str, task: str, what: What, seconds: int, left: threading.Event) -> Inspection:
    """On a thread, which it holds until the task has answered or is too late, or the console ends."""

    def pause(at_most: float) -> None:
        if left.wait(at_most):
            raise ArdeaError("nobody waits for it any more")

    with desk.scheduler.find(topology) as found, found.control() as control:
        return inspect(control, task, what, seconds, pause=pause)


ROUTES = (
    Route(
        path="/topologies/{name}/tasks/{task}/sample",
        right=Right.ACT,
        answer=_sample,
        gives=(Log,),
        about="Some of the rows that a task, or all tasks of a component, emit from now on: events `lines`",
        events="only",
        parameters=(
            Parameter(
                "rows", "at most so many", {"type": "integer", "minimum": 1, "maximum": MOST_ROWS, "default": ROWS}
            ),
            Parameter(
                "seconds",
                "how long, at most",
                {"type": "integer", "minimum": 1, "maximum": MOST_SAMPLED, "default": SECONDS},
            ),
        ),
    ),
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
