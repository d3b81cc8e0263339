"""The console's interface, on a topology that runs: it says what the command line says, and does what is confirmed."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.machine import out_of_patience
from tests.process.console.conftest import TOPOLOGIES, Console, call
from tests.process.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("leaks")]


class Client:
    """A program that has the link."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self._address = parts.netloc
        self._headers = {"Authorization": f"Bearer {parse_qs(parts.fragment)['token'][0]}"}

    def ask(self, path: str, body: object = None) -> tuple[int, dict]:
        connection = self._asked(path, body, 120)
        try:
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def events(self, path: str) -> Iterator[tuple[str, dict]]:
        """Until the console is gone."""
        connection, kind = self._asked(path, None, 30), ""
        try:
            for line in connection.getresponse():
                name, _, value = line.decode().strip().partition(": ")
                if name == "event":
                    kind = value
                elif name == "data":
                    yield kind, json.loads(value)
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _asked(self, path: str, body: object, timeout: float) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection(self._address, timeout=timeout)
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
        connection.request(method, f"/api/v1{path}", data, self._headers)
        return connection


@pytest.fixture
def state(tmp_path):
    submitted = call(tmp_path, "submit", "local", f"{TOPOLOGIES}:Watched")
    assert "is submitted" in submitted.stderr, submitted.stderr
    yield tmp_path
    if list((tmp_path / "state").rglob("Watched*")):  # a test that has failed
        call(tmp_path, "kill", "Watched", "--wait-secs", 0)


@pytest.fixture
def shown(state):
    console = Console(state)
    yield console
    console.stop()


def told(state, *verb) -> dict:
    return json.loads(call(state, *verb, "-o", "json").stdout)


def until(client: Client, path: str, kind: str, holds) -> dict:
    for name, document in client.events(path):
        if name == kind and holds(document):
            return document
    raise AssertionError(f"the events of {path} have ended")


def test_it_says_what_the_command_line_says_and_ends_what_was_confirmed(state, shown):
    client = Client(shown.link)
    working = until(client, "/topologies/Watched/events", "top", lambda top: any(row["acked"] for row in top["rows"]))
    assert working["reading"]["state"] == "live"
    status, document = client.ask("/topologies/Watched")
    said = told(state, "describe", "Watched")
    assert (status, document.keys() - said.keys(), said.keys() - document.keys()) == (200, {"reading"}, set())
    for each in ("id", "name", "state", "submitted_at", "location", "kept_by", "metrics_ports", "folder"):
        assert document[each] == said[each], each
    assert client.ask("/topologies/Watched/plan")[1] == told(state, "describe", "Watched", "--plan")

    following = client.events("/topologies/Watched/events")
    assert next(following)[1]
    shown.kill()
    began = time.monotonic()
    assert list(following)[100:] == []
    assert not out_of_patience(began, 10), "a viewer is told at once"
    shown.start_again()
    client = Client(shown.link)
    kinds = set()
    for kind, _ in client.events("/topologies/Watched/events"):
        kinds.add(kind)
        if kinds == {"topology", "plan", "top"}:
            break

    status, preview = client.ask("/topologies/Watched/kill", {"wait_secs": 0})
    assert (status, preview["verb"]) == (200, "kill")
    status, problem = client.ask("/topologies/Watched/kill", {"wait_secs": 1, "confirm": preview["confirm"]})
    assert (status, problem["status"]) == (409, 409)
    status, done = client.ask("/topologies/Watched/kill", {"wait_secs": 0, "confirm": preview["confirm"]})
    assert (status, done.get("topology")) == (200, preview["topology"]), done
    eventually(lambda: client.ask("/topologies")[1]["topologies"] == [], 30, "the list says so, too")
