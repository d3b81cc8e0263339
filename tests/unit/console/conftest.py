"""A console over the scheduler that runs nothing, reached over HTTP in this process."""

from __future__ import annotations

import contextlib
import functools

import pytest
from starlette.testclient import TestClient

from ardea.console.app import application
from ardea.console.asking import Asker
from ardea.console.desk import Desk
from ardea.console.pages import File
from ardea.console.questions import PACES, Questions
from ardea.console.tokens import Hosts, Tokens
from ardea.scheduler.registry import Place
from ardea.testing.schedulers import TOPOLOGIES
from tests.unit.cli import memory
from tests.unit.cli.memory import Memory

VIEW, ACT = "v" * 32, "a" * 32
FILES = {"/": File(b"<!doctype html>", None, "text/html; charset=utf-8", '"page"')}


@pytest.fixture(autouse=True)
def nothing_runs():
    memory.RUNNING.clear()


@pytest.fixture
def file(tmp_path) -> str:
    path = tmp_path / f"console_{abs(hash(tmp_path))}.py"
    path.write_text(TOPOLOGIES)
    return str(path)


@pytest.fixture
def submit(file):
    """A topology of the file, which counts as running from now on; its id."""

    def submitted(kind: str = "Endless", name: str | None = None) -> str:
        entry = Memory().prepare(f"{file}:{kind}", {} if name is None else {"topology.name": name})
        entry.submit(lambda _: None)
        return entry.id

    return submitted


class Browser:
    """Whoever asks: with a token, from the console's own name.  The console begins with the first request."""

    def __init__(self, desk: Desk, close: contextlib.ExitStack) -> None:
        self.desk, self._close = desk, close

    @functools.cached_property
    def client(self) -> TestClient:
        return self._close.enter_context(TestClient(application(self.desk)))

    def ask(self, path: str, token: str | None = VIEW, method: str = "GET", **rest):
        headers = {"host": "localhost:8080"} | ({"authorization": f"Bearer {token}"} if token else {})
        headers |= rest.pop("headers", {})
        headers = {name: value for name, value in headers.items() if value is not None}
        return self.client.request(method, path, headers=headers, **rest)

    def get(self, path: str, token: str | None = VIEW, **rest):
        return self.ask(f"/api/v1{path}", token, **rest)

    def post(self, path: str, body=None, token: str | None = ACT, **rest):
        return self.ask(f"/api/v1{path}", token, "POST", json={} if body is None else body, **rest)


@contextlib.contextmanager
def a_browser(prometheus=None):
    """Of a console of its own; ``prometheus`` answers questions about hours."""
    scheduler = Memory()
    desk = Desk(
        place=Place("memory"),
        scheduler=scheduler,
        asker=Asker(Questions(scheduler, prometheus).all, PACES),
        tokens=Tokens(VIEW, ACT),
        hosts=Hosts(["console.example"]),
        files=FILES,
        longer=prometheus is not None,
    )
    with contextlib.ExitStack() as close:
        yield Browser(desk, close)


@pytest.fixture
def browser():
    with a_browser() as asked:
        yield asked
