"""A sample of what a task emits: as it comes, and bounded in rows, bytes and time."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from ardea.console import debug_routes
from ardea.scheduler import emits
from tests.unit.cli.memory import Found, entry
from tests.unit.console.conftest import ACT, VIEW

SAMPLE = "/topologies/Endless/tasks/numbers/sample"


@pytest.fixture
def emits_rows(monkeypatch):
    """Each order has the task write two rows and what is none; all orders."""
    orders, ask, number = [], Found.ask, itertools.count()

    def obey(self, verb, **arguments):
        if verb == "debug":
            orders.append(arguments)
            rows = f"default ({next(number)},)", f"default ({next(number)},)"
            as_text = f"2026-11-28 INFO numbers-0.emits: {rows[0]}"
            as_json = f'{{"time": "2026-11-28", "logger": "numbers-0.emits", "message": "{rows[1]}"}}'
            entry(self.id).printed["numbers-0"] += [as_text, "2026-11-28 INFO numbers-0: something else", as_json]
        return ask(self, verb, **arguments)

    monkeypatch.setattr(Found, "ask", obey)
    monkeypatch.setattr(emits, "RENEW_EVERY", 0.0)
    return orders


def lines(answer) -> list[str]:
    assert answer.status_code == 200, answer.text
    events = [block.splitlines() for block in answer.text.split("\n\n") if block]
    assert {block[0] for block in events} <= {"event: lines"}
    documents = [msgspec.json.decode(block[1].removeprefix("data: ")) for block in events]
    return [f"{line['process']} {line['text']}" for document in documents for line in document["lines"]]


def test_rows_come_until_there_are_enough(browser, submit, emits_rows):
    submit()
    rows = lines(browser.get(f"{SAMPLE}?rows=5", ACT))
    assert rows == [f"numbers-0 default ({number},)" for number in range(5)]
    assert emits_rows[0] == {"target": "numbers", "seconds": "15"}
    one = lines(browser.get("/topologies/Endless/tasks/numbers:0/sample?rows=1", ACT))
    assert len(one) == 1
    assert emits_rows[-1]["target"] == "numbers-0"


def test_it_ends_when_the_time_is_over(browser, submit, monkeypatch):
    submit()
    at = itertools.count()
    monkeypatch.setattr(debug_routes, "clock", lambda: float(next(at)))
    assert lines(browser.get(f"{SAMPLE}?seconds=300", ACT)) == []
    assert next(at) == 301


def test_it_ends_when_there_are_enough_bytes(browser, submit, emits_rows, monkeypatch):
    submit()
    monkeypatch.setattr(debug_routes, "HELD_BYTES", 25)
    assert len(lines(browser.get(SAMPLE, ACT))) == 3


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        (SAMPLE, None, 401),
        (SAMPLE, VIEW, 403),
        (f"{SAMPLE}?rows=1001", ACT, 400),
        (f"{SAMPLE}?seconds=0", ACT, 400),
        (SAMPLE.replace("numbers", "ignore"), ACT, 400),  # it declares no outputs
        (SAMPLE.replace("numbers", "nobody"), ACT, 404),
    ],
)
def test_who_may_not_and_what_cannot_be(browser, submit, emits_rows, path, token, status):
    submit()
    assert browser.get(path, token).status_code == status
    assert emits_rows == []
