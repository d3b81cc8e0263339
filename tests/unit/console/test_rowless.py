"""Who may only look is not told what rows contain."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest
from starlette.requests import Request

from ardea.console import rowless, topology_routes
from ardea.console.documents import Problem
from ardea.console.doings import ActionDocument
from ardea.console.guard import RIGHT
from ardea.console.tokens import Right
from ardea.health import Health, HealthState, ProcessRow, Trouble
from ardea.scheduler.control import StoryEvent
from ardea.snapshots.status import LastRollback, SnapshotStatus, WaitingSink
from tests.unit.cli.memory import Found
from tests.unit.console.conftest import ACT, VIEW

VALUE = "somebody@example.com"
RAISED = f"count-0 raised ValueError: {VALUE} at count.py:3 (tuple 1.2 of split, stream default: ('{VALUE}', 3))"
REFUSED = f"the table words refuses the row ('{VALUE}', 3): duplicate key"
ENDED = f"1 tuple was given up; the last error: {RAISED}"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (RAISED, "count-0 raised ValueError"),
        (
            f"1 interval waits: cannot commit: ValueError: {VALUE} is no number",
            "1 interval waits: cannot commit: ValueError",
        ),
        (f"{RAISED}; all go back to the last snapshot", "count-0 raised ValueError"),
        (REFUSED, "the table words refuses a row"),
        (ENDED, "1 tuple was given up"),
        (f"count-0: {VALUE}\nis odd (the first of 3 tuples, 1.2 of a, stream b: (1,))", f"count-0: {VALUE}\nis odd"),
        (
            "died 7 times in 21 s: ValueError: no such table at fragile.py:30 (pid 55)",
            "died 7 times in 21 s: ValueError: no such table at fragile.py:30 (pid 55)",
        ),
        ("", ""),
    ],
)
def test_a_text_is_cut_where_values_begin(text, left):
    assert rowless.cut(text) == left


@pytest.fixture
def failing(monkeypatch):
    """What the master says has a row wherever one may be."""
    ask = Found.ask
    health = Health(HealthState.DEGRADED, [Trouble("store-0", 1.0, f"1 interval waits: {REFUSED}")])
    row = ProcessRow(1, "count-0", "backoff", None, 2, 1, 1.0, f"count-0 {RAISED}", f"died 3 times: {RAISED}")
    snapshots = SnapshotStatus(
        mode="EFFECTIVELY_ONCE", state="RUNNING", timeline=2, interval=10.0, why=RAISED, waits=[RAISED],
        rollback=LastRollback("error", RAISED, 1.0), sinks=[WaitingSink("store-0", 1, 1.0, REFUSED)],
    )  # fmt: skip

    def said(self, verb, **arguments):
        status = ask(self, verb, **arguments)
        stories = {"count-0": [StoryEvent(1.0, RAISED, 1)]}
        return msgspec.structs.replace(
            status, errors=[RAISED], erring=["count-0"], reason=ENDED, health=health, supervised=[row],
            stories=stories, snapshots=snapshots,
        )  # fmt: skip

    describe = Found.describe

    def described(self):
        found = describe(self)
        found.processes.append(row)
        return found

    monkeypatch.setattr(Found, "ask", said)
    monkeypatch.setattr(Found, "describe", described)


@pytest.mark.parametrize("path", ["/topologies/Endless", "/topologies/Endless/top"])
def test_no_document_has_a_row_for_who_may_look(browser, submit, failing, path):
    submit()
    looking, acting = browser.get(path, VIEW), browser.get(path, ACT)
    assert (looking.status_code, acting.status_code) == (200, 200), looking.text
    assert VALUE in acting.text
    assert VALUE not in looking.text
    assert "refuses a row" in looking.text
    assert looking.json().keys() == acting.json().keys()
    if "status" in looking.json():
        assert looking.json()["status"]["errors"] == []
        assert looking.json()["status"]["erring"] == ["count-0"], "who has raised is no secret"
        assert acting.json()["status"]["errors"] == [RAISED]


def test_events_have_none_either(browser, submit, failing):
    """Viewers with both tokens look at the same topology at the same time."""
    topology, desk = submit(), browser.desk

    async def first(right: Right) -> str:
        request = Request({"type": "http", "path_params": {"name": topology}, "headers": [], RIGHT: right})
        response = await topology_routes._topology_events(desk, request)
        async with contextlib.aclosing(response.body_iterator) as events:
            async for event in events:
                if event.startswith(b"event: topology\n"):
                    return event.decode()
        raise AssertionError("no event")

    async def both() -> list[str]:
        asking = asyncio.ensure_future(desk.asker.run())
        try:
            async with asyncio.timeout(20):
                return [await first(right) for right in (Right.ACT, Right.VIEW, Right.ACT, Right.VIEW)]
        finally:
            asking.cancel()

    assert [VALUE in document for document in asyncio.run(both())] == [True, False, True, False]


def test_an_action_that_has_failed():
    problem = Problem(title="t", status=500, what=RAISED, where="w", hint=None)
    told = rowless.of_action(ActionDocument(verb="kill", state="failed", said=[ENDED], problem=problem))
    assert VALUE not in repr(told)
    assert told.said == ["1 tuple was given up"]
