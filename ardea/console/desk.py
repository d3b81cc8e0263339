"""What routes work with, and how a route is written down."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from ardea.console.asking import Asker
from ardea.console.documents import encoded
from ardea.console.doings import Doings
from ardea.console.feeds import Shared, Viewers
from ardea.console.guard import RIGHT
from ardea.console.pages import File
from ardea.console.problems import Refused
from ardea.console.questions import LIST
from ardea.console.readings import Key, Look
from ardea.console.tokens import Hosts, Right, Tokens
from ardea.documents.topologies import TopologyDocument
from ardea.errors import NotFound
from ardea.scheduler.registry import Place
from ardea.scheduler.schedulers import Scheduler

API = "/api/v1"
READERS = 16
"""Who follow a log at a time."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Of one console.

    Attributes:
        place: where its topologies are.
        scheduler: the same, opened.
        asker: what is known of them.
        tokens: who may do what.
        hosts: by what names it is reached.
        files: the page's.
        viewers: how many there are.
        shared: documents of events, for all viewers.
        doings: verbs that are under way.
        readers: how many follow a log.
        busy: what is just being looked into or made, one at a time.
        threads: for what takes a while: logs that are followed, stacks.
        longer: whether there is a Prometheus, which knows hours and days.
    """

    place: Place
    scheduler: Scheduler
    asker: Asker
    tokens: Tokens
    hosts: Hosts
    files: Mapping[str, File]
    viewers: Viewers = field(default_factory=Viewers)
    shared: Shared = field(default_factory=Shared)
    readers: Viewers = field(default_factory=lambda: Viewers(READERS))
    doings: Doings = field(default_factory=Doings)
    busy: set[str] = field(default_factory=set)
    threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(2 * READERS, thread_name_prefix="work")
    )
    longer: bool = False

    @contextlib.contextmanager
    def alone(self, what: str, says: str) -> Iterator[None]:
        """While one of ``what`` is under way; Refused: one is already.  ``says``: that it is, in words."""
        if what in self.busy:
            raise Refused(409, f"{says} already", hint="try again in a while")
        self.busy.add(what)
        try:
            yield
        finally:
            self.busy.discard(what)

    async def topology(self, name: str) -> TopologyDocument:
        """The topology of that id; else the running one of that name; else the newest of that name.

        Raises:
            NotFound: there is none.
        """
        found = _named(self.asker.look(LIST), name)
        if found is None or (found.id != name and not found.running):  # by now another one of that name may run
            found = _named(await self.asker.fresh(LIST), name)
        elif found.id != name:  # another one of that name may have begun
            self.asker.want(LIST)
        if found is None:
            raise NotFound(f"no topology is called {name}", hint="`ardea list` shows those that there are")
        return found

    def means_another(self, name: str, topology: str) -> bool:
        """Whether a name that stood for the topology of that id stands for another one by now."""
        if name == topology:
            return False
        self.asker.want(LIST)
        found = _named(self.asker.look(LIST), name)
        return found is not None and found.id != topology

    async def look(self, kind: str, name: str) -> tuple[str, Look]:
        """The id of the topology of that name, and what is known of it; see :meth:`Asker.fresh`."""
        topology = (await self.topology(name)).id
        return topology, await self.asker.fresh(Key(kind, topology))


class Parameter(NamedTuple):
    """One of a query; ``schema`` is OpenAPI's."""

    name: str
    about: str
    schema: Mapping[str, Any]


Handler = Callable[[Desk, Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One line of the interface.

    Attributes:
        method: ``GET`` or ``POST``.
        path: below ``/api/v1``, as starlette has it.
        right: what a token must allow.
        answer: gives the response; an ArdeaError becomes a problem.
        gives: the types of the documents, one of which it gives.
        file: the media type of the file that it gives; empty: it gives documents.
        about: a sentence for the OpenAPI document.
        takes: the type of the request's body; None: it has none.
        parameters: of the query.
        events: whether it gives server-sent events, whose data are such documents: ``also``, if the query says so.
    """

    method: str = "GET"
    path: str
    right: Right
    answer: Handler
    gives: tuple[Any, ...]
    about: str
    takes: Any = None
    file: str = ""
    parameters: tuple[Parameter, ...] = ()
    events: Literal["never", "also", "only"] = "never"


def sent(request: Request, document: Any) -> Response:
    """A document, or 304 where the one who asks has it."""
    body, tag = encoded(document)
    if has(request, tag):
        return Response(status_code=304, headers={"ETag": tag})
    return Response(body, media_type="application/json", headers={"ETag": tag})


def sees_rows(request: Request) -> bool:
    """Whether who asks may see what rows contain."""
    right: Right = request.scope[RIGHT]
    return right >= Right.ACT


def has(request: Request, tag: str) -> bool:
    """Whether the one who asks has what this tag stands for."""
    known = request.headers.get("if-none-match", "")
    return tag in {each.strip().removeprefix("W/") for each in known.split(",")}


def whole(request: Request, name: str, default: int, least: int, most: int) -> int:
    """A number of the query.

    Raises:
        Refused: it is none, or out of bounds.
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and least <= int(text) <= most):
        raise Refused(400, f"{name} takes a number from {least:,} to {most:,}, not {text[:50]!r}")
    return int(text)


def _named(look: Look, name: str) -> TopologyDocument | None:
    listed: list[TopologyDocument] = look.said or []
    called = [each for each in listed if name in (each.id, each.name)]
    exact = [each for each in called if each.id == name] or [each for each in called if each.running] or called
    return exact[0] if exact else None
