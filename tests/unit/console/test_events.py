"""Events of the list and of one topology; nothing is asked on threads, and no time passes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from ardea.console import topology_routes
from ardea.console.desk import Desk
from ardea.console.guard import RIGHT
from ardea.console.questions import LIST, Questions
from ardea.console.readings import Key, Look, State
from ardea.console.tokens import Hosts, Right, Tokens
from ardea.errors import NotFound
from ardea.scheduler.registry import Place
from tests.unit.cli.memory import Memory
from tests.unit.console.conftest import ACT, VIEW


class Asked:
    """In the asker's place: whoever waits for news gets what was wanted until then."""

    epoch = 0.0

    def __init__(self) -> None:
        self.known: dict[Key, Look] = {}
        self._questions, self._wanted = Questions(Memory()).all, {}

    def clock(self) -> float:
        return 0.0

    def want(self, key: Key) -> None:
        self._wanted[key] = None

    def look(self, key: Key) -> Look:
        return self.known.get(key, Look(State.UNKNOWN))

    async def fresh(self, key: Key) -> Look:
        self._ask(key)
        return self.look(key)

    async def news(self, _: float) -> None:
        for key in self._wanted:
            self._ask(key)
        self._wanted.clear()
        await asyncio.sleep(0)

    def _ask(self, key: Key) -> None:
        try:
            self.known[key] = Look(State.LIVE, self._questions[key.kind](key.topology, None).said, 0.0)
        except NotFound as error:
            self.known[key] = self.look(key)._replace(state=State.OVER, error=error)


class Request:
    """Of who may act."""

    def __init__(self, name: str = "") -> None:
        self.path_params, self.scope = {"name": name}, {RIGHT: Right.ACT}


@pytest.fixture
def desk():
    scheduler = Memory()
    return Desk(Place("memory"), scheduler, Asked(), Tokens(VIEW, ACT), Hosts(()), {})


async def documents(stream) -> AsyncIterator[tuple[str, dict]]:
    async for each in stream.body_iterator:
        kind, data = each.decode().strip().split("\n")
        yield kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))


def test_topologies_that_run_are_listed_before_others(desk, submit, monkeypatch):
    monkeypatch.setattr(topology_routes, "MOST_LISTED", 2)
    runs = [submit(name=name) for name in ("a", "b", "c")][2]
    listed = desk.scheduler.topologies()

    async def first() -> dict:
        look = await desk.asker.fresh(LIST)
        said = [msgspec.structs.replace(each, running=each.id == runs) for each in look.said]
        desk.asker.known[LIST] = look._replace(said=said)
        events = documents(await topology_routes._list_events(desk, Request()))
        _, document = await anext(events)
        return document

    told = asyncio.run(first())
    assert [each["name"] for each in told["topologies"]] == ["c", "a"]
    assert told["after"] == listed[0].id, "there are more"
