"""Stacks and profiles of a task, for those who may act."""

from __future__ import annotations

import asyncio
import threading

import msgspec
import pytest
from starlette.requests import Request

from ardea.console import debug_routes
from ardea.protocol.inspection import Answer, Inspection, as_text, pack
from tests.unit.cli.memory import Found
from tests.unit.console.conftest import ACT

FOUND = Inspection(
    what="profile", task="ignore-0", component="ignore", container=1, host="h", pid=1, life=1, at="now", seconds=2.0
)


@pytest.fixture
def asked(monkeypatch):
    """Tasks answer at once; what they were asked."""
    said, ask = [], Found.ask

    def answer(self, verb, **arguments):
        if verb != "inspect":
            return ask(self, verb, **arguments)
        said.append((arguments["task"], arguments["what"], arguments["seconds"]))
        found = Answer(arguments["id"], arguments["task"], as_text(pack(FOUND)))
        return msgspec.structs.replace(ask(self, "status"), inspection=found)

    monkeypatch.setattr(Found, "ask", answer)
    return said


def test_a_task_is_asked(browser, submit, asked):
    submit()
    told = browser.get("/topologies/Endless/tasks/ignore:0/profile?seconds=2", ACT)
    assert (told.status_code, told.json()["task"]) == (200, "ignore-0"), told.text
    assert browser.get("/topologies/Endless/tasks/ignore-0/stacks", ACT).status_code == 200
    assert asked == [("ignore-0", "profile", "2"), ("ignore-0", "stacks", "0")]


@pytest.mark.parametrize(
    ("query", "token", "status"), [("", None, 401), ("", "v" * 32, 403), ("?seconds=61", ACT, 400)]
)
def test_who_may_not_and_what_cannot_be(browser, submit, asked, query, token, status):
    submit()
    assert browser.get(f"/topologies/Endless/tasks/ignore-0/profile{query}", token).status_code == status
    assert asked == []


def test_a_profile_is_given_up_when_the_console_ends(browser, submit, monkeypatch):
    """Its thread would keep the process for a minute."""
    topology, asked, ended = submit(), threading.Event(), threading.Event()

    def silent(self, verb, **arguments):
        asked.set()
        found = Answer(arguments["id"], arguments["task"], None)
        return msgspec.structs.replace(ask(self, "status"), inspection=found)

    def look(*arguments):
        try:
            return look_(*arguments)
        finally:
            ended.set()

    ask, look_ = Found.ask, debug_routes._look
    monkeypatch.setattr(Found, "ask", silent)
    monkeypatch.setattr(debug_routes, "_look", look)
    request = Request({"type": "http", "path_params": {"name": topology, "task": "ignore-0"}, "query_string": b""})

    async def go() -> None:
        asking = asyncio.ensure_future(browser.desk.asker.run())
        profile = asyncio.ensure_future(debug_routes._profile(browser.desk, request))
        assert await asyncio.to_thread(asked.wait, 20)
        profile.cancel()
        assert await asyncio.to_thread(ended.wait, 5)
        asking.cancel()
        assert browser.desk.busy == set()

    asyncio.run(go())
