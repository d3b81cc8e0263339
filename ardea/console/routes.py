"""All routes of the REST interface, in one table.  docs/console.md says how one is added."""

from __future__ import annotations

from ardea.console import debug_routes, history_routes, topology_routes
from ardea.console.desk import Route

ROUTES: tuple[Route, ...] = (*topology_routes.ROUTES, *history_routes.ROUTES, *debug_routes.ROUTES)
