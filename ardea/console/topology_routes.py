"""Routes of what can be seen: the list, one topology, its rates, its plan, its snapshots, and events of them all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from ardea.console import rowless
from ardea.console.desk import Desk, Parameter, Route, sees_rows, sent, whole
from ardea.console.documents import (
    Description,
    Encoded,
    Snapshots,
    Top,
    Topologies,
    encoded,
    reading,
)
from ardea.console.doings import ActionDocument
from ardea.console.feeds import Feed
from ardea.console.problems import Refused
from ardea.console.questions import LIST, Told, of_shape
from ardea.console.readings import Key, Look, State
from ardea.console.streams import Stream, event
from ardea.console.tokens import Right
from ardea.documents.plan import PlanDocument
from ardea.errors import Unreachable

LISTED, MOST_LISTED = 100, 1000
RATES_WITHIN = 5.0
_PAGE = (
    Parameter("limit", "at most so many", {"type": "integer", "minimum": 1, "maximum": MOST_LISTED, "default": LISTED}),
    Parameter("after", "the id behind which the list goes on", {"type": "string"}),
)


async def _topologies(desk: Desk, request: Request) -> Response:
    limit = whole(request, "limit", LISTED, 1, MOST_LISTED)
    look = await desk.asker.fresh(LIST)
    return sent(request, _page(desk, look, limit, request.query_params.get("after"), rows=sees_rows(request)))


def _page(desk: Desk, look: Look, limit: int, after: str | None = None, *, rows: bool) -> Topologies:
    ids = [each.id for each in look.said]
    if after is not None and after not in ids:
        raise Refused(400, f"after={after[:200]}: no such topology is listed any more", hint="begin without `after`")
    first = 0 if after is None else ids.index(after) + 1
    chosen = look.said[first : first + limit]
    more = chosen[-1].id if chosen and first + limit < len(ids) else None
    if not rows:
        chosen = list(map(rowless.of_topology, chosen))
    return Topologies(topologies=chosen, after=more, reading=reading(look, desk.asker.epoch))


async def _topology(desk: Desk, request: Request) -> Response:
    _, look = await desk.look("topology", request.path_params["name"])
    return sent(request, _description(desk, look, rows=sees_rows(request)))


async def _plan(desk: Desk, request: Request) -> Response:
    topology, look = await desk.look("topology", request.path_params["name"])
    told: Told = look.said
    if told.plan is None:
        raise Unreachable(f"{topology}: no master has said yet what runs", hint="`ardea describe` shows how far it is")
    return sent(request, of_shape(told.plan))


async def _top(desk: Desk, request: Request) -> Response:
    topology, look = await desk.look("topology", request.path_params["name"])
    deadline = desk.asker.clock() + RATES_WITHIN
    while look.state is State.LIVE and not _has_rates(look) and desk.asker.clock() < deadline:
        desk.asker.want(Key("topology", topology))
        await desk.asker.news(0.5)
        look = desk.asker.look(Key("topology", topology))
    if (document := _rates(desk, look, rows=sees_rows(request))) is None:
        raise look.error or Unreachable(f"{topology} does not run", hint=f"`ardea describe {topology}` says why")
    return sent(request, document)


def _has_rates(look: Look) -> bool:
    return look.said.top is not None and look.said.top.seconds > 0


def _description(desk: Desk, look: Look, *, rows: bool) -> Description:
    document = Description(**asdict(look.said.described.document), reading=reading(look, desk.asker.epoch))
    return document if rows else rowless.of_description(document)


def _rates(desk: Desk, look: Look, *, rows: bool) -> Top | None:
    told: Told = look.said
    if told.top is None:
        return None
    document = Top(**asdict(told.top), reading=reading(look, desk.asker.epoch))
    return document if rows else rowless.of_top(document)


async def _snapshots(desk: Desk, request: Request) -> Response:
    _, look = await desk.look("snapshots", request.path_params["name"])
    return sent(request, Snapshots(**asdict(look.said), reading=reading(look, desk.asker.epoch)))


async def _list_events(desk: Desk, request: Request) -> Response:
    rows = sees_rows(request)

    def documents() -> dict[str, Encoded]:
        look = desk.asker.look(LIST)
        if look.said is None:
            return {}
        look = look._replace(said=sorted(look.said, key=lambda each: not each.running))
        return {"topologies": encoded(_page(desk, look, MOST_LISTED, rows=rows))}

    return events(desk, LIST, documents, rows=rows)


async def _topology_events(desk: Desk, request: Request) -> Response:
    name, rows = request.path_params["name"], sees_rows(request)
    key = Key("topology", (await desk.topology(name)).id)

    def documents() -> dict[str, Encoded]:
        look = desk.asker.look(key)
        action = desk.doings.last(key.topology)
        doing = {} if action is None else {"action": encoded(action if rows else rowless.of_action(action))}
        if look.said is None:
            return doing
        found = doing | {"topology": encoded(_description(desk, look, rows=rows))}
        if look.said.plan is not None:
            found["plan"] = encoded(of_shape(look.said.plan))
        if (top := _rates(desk, look, rows=rows)) is not None and top.seconds > 0:
            found["top"] = encoded(top)
        return found

    return events(desk, key, documents, rows=rows, until=lambda: desk.means_another(name, key.topology))


def events(
    desk: Desk,
    key: Key,
    documents: Callable[[], dict[str, Encoded]],
    *,
    rows: bool,
    until: Callable[[], bool] = lambda: False,
) -> Stream:
    """Documents as they change, to one viewer.

    Args:
        desk: what routes work with.
        key: what the viewer looks at.
        documents: what is known at present, by the names of events; called once for all viewers alike of this key.
        rows: whether the viewer may see what rows contain.
        until: whether the stream ends now: who asks again sees something else.

    Raises:
        Refused: there are too many viewers.
    """

    async def stream() -> AsyncIterator[bytes]:
        feed = Feed()
        while not until():
            desk.asker.want(key)
            version = (*desk.asker.look(key), desk.doings.last(key.topology))
            for news in feed.news(desk.shared.of((key, rows), version, documents)):
                yield event(news.kind, news.body)
            await desk.asker.news(1.0)

    return Stream(desk.viewers, stream())


ROUTES = (
    Route(
        path="/topologies",
        right=Right.VIEW,
        answer=_topologies,
        gives=(Topologies,),
        about="The topologies, the newest first",
        parameters=_PAGE,
    ),
    Route(
        path="/events",
        right=Right.VIEW,
        answer=_list_events,
        gives=(Topologies,),
        about=f"At most {MOST_LISTED} of the list as it changes, those that run first: event `topologies`",
        events="only",
    ),
    Route(
        path="/topologies/{name}",
        right=Right.VIEW,
        answer=_topology,
        gives=(Description,),
        about="What is known of one",
    ),
    Route(
        path="/topologies/{name}/plan", right=Right.VIEW, answer=_plan, gives=(PlanDocument,), about="Its components"
    ),
    Route(
        path="/topologies/{name}/top",
        right=Right.VIEW,
        answer=_top,
        gives=(Top,),
        about="What each component and task does, and what flows between them",
    ),
    Route(
        path="/topologies/{name}/snapshots",
        right=Right.VIEW,
        answer=_snapshots,
        gives=(Snapshots,),
        about="Its snapshot that counts, and savepoints",
    ),
    Route(
        path="/topologies/{name}/events",
        right=Right.VIEW,
        answer=_topology_events,
        gives=(Description, PlanDocument, Top, ActionDocument),
        about="Its documents as they change, while it has the name: events `topology`, `plan`, `top`, `action`",
        events="only",
    ),
)
