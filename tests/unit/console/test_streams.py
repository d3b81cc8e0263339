"""Events to viewers who are too many, or who do not take them: over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading

import uvicorn

from ardea.console import downloads
from ardea.console.feeds import Viewers
from ardea.console.streams import Stream, event
from ardea.drpc import connections
from tests.process.waiting import eventually
from tests.unit.console.conftest import VIEW

BIG = b'"%s"' % (b"x" * (1 << 20))


@contextlib.contextmanager
def asked(respond):
    """A socket that has asked for ``respond()``."""

    async def application(scope, receive, send):
        if scope["type"] == "http":
            await respond()(scope, receive, send)

    config = uvicorn.Config(
        application, http=connections.BoundedConnection, log_level="warning", access_log=False, lifespan="off"
    )
    server, opened = uvicorn.Server(config), socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
    thread.start()
    try:
        with socket.create_connection(opened.getsockname()) as viewer:
            viewer.settimeout(20)
            viewer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            yield viewer
    finally:
        server.should_exit = True
        thread.join(20)
        opened.close()


async def many():
    while True:
        yield event("big", BIG)
        await asyncio.sleep(0)


def test_who_takes_no_event_is_cut_off_and_makes_room(monkeypatch, capfd):
    monkeypatch.setattr(connections, "STUCK", 0.3)
    viewers = Viewers(1)
    with asked(lambda: Stream(viewers, many())) as slow:
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        eventually(lambda: viewers._count == 0, 20)
    assert capfd.readouterr().err == ""


def test_who_takes_no_part_of_a_file_is_cut_off_and_it_is_made_no_more(monkeypatch, capfd):
    monkeypatch.setattr(connections, "STUCK", 0.3)
    ended = threading.Event()

    def make(out):
        try:
            while True:
                out.write(bytes(downloads.CHUNK))
        finally:
            ended.set()

    with asked(lambda: downloads.Download("a", "b/c", make)) as slow:
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        assert ended.wait(20)
    assert capfd.readouterr().err == ""


def test_who_takes_it_slowly_goes_on():
    viewers, taken = Viewers(1), 0
    with asked(lambda: Stream(viewers, many())) as slow:
        while taken < 3 * len(BIG):
            taken += len(slow.recv(1 << 16))
        assert viewers._count == 1


def test_one_too_many_is_refused(browser, submit):
    submit()
    browser.desk.viewers._most = 0
    for path in ("/events", "/topologies/Endless/events"):
        told = browser.get(path, VIEW)
        assert (told.status_code, told.json()["what"]) == (503, "too many look at this console")
        assert told.json()["hint"] == "close a page, or wait until somebody else does"
