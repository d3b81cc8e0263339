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
from tests.unit.cli.memory import RUNNING, Memory
from tests.unit.console.conftest import ACT, VIEW


class Asked:
    """Stands for the asker: a stream that waits for news gets what was wanted until then."""

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


def test_events_of_a_name_end_when_another_run_has_it_and_those_of_an_id_go_on(desk, submit):
    async def seen(name: str) -> list[str]:
        """The ids of the runs that are shown, two of them at most; another one begins after each."""
        ids = []
        async for kind, document in documents(await topology_routes._topology_events(desk, Request(name))):
            if kind == "topology":
                ids.append(document["id"])
                RUNNING.clear()
                submit()
            if len(ids) == 2:
                break
        return ids

    first = submit()
    assert asyncio.run(asyncio.wait_for(seen("Endless"), 20)) == [first]
    (second,) = (each.id for each in RUNNING.values())
    assert asyncio.run(asyncio.wait_for(seen(second), 20)) == [second, second], "it is over, and still shown"


def test_a_name_means_the_run_that_has_begun_lately_and_not_one_that_has_failed(desk, submit):
    failed = submit()
    listed = asyncio.run(desk.asker.fresh(LIST))
    said = [msgspec.structs.replace(each, running=False) for each in listed.said]
    desk.asker.known[LIST] = listed._replace(said=said)
    RUNNING.clear()
    begun = submit()
    assert failed != begun
    assert asyncio.run(desk.topology("Endless")).id == begun
