"""Routes of verbs: each is a dry run, until it confirms what that has said."""

from __future__ import annotations

from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ardea.console.acting import Task
from ardea.console.actions import VERBS, Done, Preview, read
from ardea.console.desk import Desk, Route
from ardea.console.doings import Ended
from ardea.console.questions import LIST
from ardea.console.tokens import Right


async def _act(verb: str, desk: Desk, request: Request) -> Response:
    body = await request.body()
    order = read(verb, body)
    topology = (await desk.topology(request.path_params["name"])).id
    task = Task(place=desk.place, topology=topology, verb=verb, body=body, where=request.url.path)
    try:
        if order.confirm is None:
            return _told(await desk.doings.preview(task))
        done = await desk.doings.perform(task, order)
    except Ended as error:
        return _told(error.problem, error.problem.status, "application/problem+json")
    finally:
        desk.asker.want(LIST)
    return _told(done)


def _told(document: msgspec.Struct, status: int = 200, media: str = "application/json") -> Response:
    return Response(msgspec.json.encode(document), status, media_type=media)


ROUTES = tuple(
    Route(
        method="POST",
        path=f"/topologies/{{name}}/{verb}",
        right=Right.ACT,
        answer=partial(_act, verb),
        takes=order,
        gives=(Preview, Done),
        about=(order.__doc__ or "").partition("\n")[0],
    )
    for verb, order in VERBS.items()
)
