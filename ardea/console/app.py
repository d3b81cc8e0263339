"""The application: the page, the interface, and what becomes of errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route as HttpRoute
from starlette.types import ASGIApp

from ardea.console.desk import API, Desk, Route, has
from ardea.console.guard import HEALTH, RIGHT, Guard, refusal
from ardea.console.pages import File
from ardea.console.problems import TITLES, Refused
from ardea.console.routes import ROUTES
from ardea.errors import ArdeaError


def application(desk: Desk, routes: tuple[Route, ...] = ROUTES) -> ASGIApp:
    """All that the console answers."""

    @contextlib.asynccontextmanager
    async def lives(_: Starlette) -> AsyncIterator[None]:
        asking = asyncio.ensure_future(desk.asker.run())
        try:
            yield
        finally:
            asking.cancel()
            desk.threads.shutdown(wait=False, cancel_futures=True)

    served = [
        HttpRoute(HEALTH, _healthy),
        *(HttpRoute(path, partial(_file, file), methods=["GET"]) for path, file in desk.files.items()),
        *(HttpRoute(f"{API}{route.path}", _answer(desk, route), methods=[route.method]) for route in routes),
    ]
    app = Starlette(routes=served, lifespan=lives, exception_handlers={HTTPException: _refused})
    app.router.redirect_slashes = False
    return Guard(app, desk.tokens, desk.hosts, desk.files)


def _answer(desk: Desk, route: Route) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            if request.scope[RIGHT] < route.right:
                raise Refused(
                    403,
                    "this token lets you look, not act",
                    hint="open the link with the other token, if you have one",
                )
            return await route.answer(desk, request)
        except ArdeaError as error:
            return refusal(error, request.url.path)
        except Exception as error:  # of one request: the others go on
            fault = Refused(500, f"a fault of Ardea itself: {type(error).__name__}: {error}", hint="report it")
            return refusal(fault, request.url.path)

    return answer


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _file(file: File, request: Request) -> Response:
    headers = {"ETag": file.tag, "Vary": "Accept-Encoding"}
    if has(request, file.tag):
        return Response(status_code=304, headers=headers)
    if file.small is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.small, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.type)
    return Response(file.body, headers=headers, media_type=file.type)


async def _refused(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = {
        404: "there is nothing at this path",
        405: f"{request.method} is not for this path",
    }.get(status, "it was refused")
    response = refusal(Refused(status if status in TITLES else 400, what), request.url.path)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
