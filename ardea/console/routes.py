"""All routes of the REST interface, in one table.  docs/console.md says how one is added."""

from __future__ import annotations

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ardea.console import action_routes, bundle_routes, debug_routes, history_routes, log_routes, topology_routes
from ardea.console.desk import Desk, Route, sent
from ardea.console.openapi import document
from ardea.console.tokens import Right
from ardea.versions import __version__


@cache
def interface() -> dict[str, Any]:
    """The OpenAPI document."""
    return document(ROUTES, __version__)


async def _interface(_: Desk, request: Request) -> Response:
    return sent(request, interface())


ROUTES: tuple[Route, ...] = (
    *topology_routes.ROUTES,
    *history_routes.ROUTES,
    *log_routes.ROUTES,
    *debug_routes.ROUTES,
    *bundle_routes.ROUTES,
    *action_routes.ROUTES,
    Route(path="/openapi.json", right=Right.VIEW, answer=_interface, gives=(dict[str, Any],), about="This document"),
)
