"""An answer that waits for the one who asked, by a clock of the test's own."""

from __future__ import annotations

import contextlib
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from ardea.drpc import connections
from tests.process.waiting import eventually


class Call:
    def __init__(self, at, function, arguments):
        self.at, self.function, self.arguments = at, function, arguments
        self.cancelled = False

    def when(self):
        return self.at

    def cancel(self):
        self.cancelled = True


class Loop:
    """Calls what is due when its time is set."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def call_later(self, delay, function, *arguments):
        self.calls.append(Call(self.now + delay, function, arguments))
        return self.calls[-1]

    def until(self, now):
        while due := [each for each in self.calls if each.at <= now and not each.cancelled]:
            first = min(due, key=Call.when)
            self.calls.remove(first)
            self.now = first.at
            first.function(*first.arguments)
        self.now = now


class Transport:
    """``waiting``: bytes of an answer that the socket has not taken."""

    def __init__(self):
        self.waiting, self.socket = 0, None
        self.aborted = False

    def get_write_buffer_size(self):
        return self.waiting

    def get_extra_info(self, name):
        return self.socket if name == "socket" else None

    def is_closing(self):
        return self.aborted

    def abort(self):
        self.aborted = True


@pytest.fixture
def loop():
    return Loop()


@pytest.fixture
def transport():
    return Transport()


@pytest.fixture
def connection(loop, transport):
    """One whose request is here."""
    config = uvicorn.Config(lambda scope: None, http=connections.BoundedConnection, access_log=False, log_config=None)
    made = connections.BoundedConnection(config, ServerState(), {}, loop)
    made.connection_made(transport)
    made._wait_no_longer()
    return made


def test_who_takes_a_long_answer_steadily_is_not_cut_off(loop, transport, connection):
    transport.waiting = 20 << 20
    connection.pause_writing()
    for second in range(1, 120):
        transport.waiting -= 1 << 17
        loop.until(second)
        assert not transport.aborted, second
    connection.resume_writing()
    assert all(each.cancelled for each in loop.calls)


def test_what_the_socket_still_holds_counts(loop, transport, connection):
    """It takes more of an answer in steps of a megabyte."""
    transport.waiting = 20 << 20
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as reader:
        transport.socket, _ = server.accept()
        with transport.socket:
            transport.socket.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    transport.socket.send(bytes(1 << 20))
            connection.pause_writing()
            before = connection._untaken
            assert before > transport.waiting
            reader.recv(1 << 20, socket.MSG_WAITALL)
            eventually(lambda: connection._untaken < before, 20)
            loop.until(connections.STUCK)
            assert not transport.aborted
            loop.until(2 * connections.STUCK)
            assert transport.aborted


def test_who_takes_no_more_of_it_is_cut_off(loop, transport, connection):
    transport.waiting = 20 << 20
    connection.pause_writing()
    loop.until(5)
    transport.waiting -= 1
    loop.until(connections.STUCK)
    assert not transport.aborted
    loop.until(2 * connections.STUCK)
    assert transport.aborted


def test_who_takes_nothing_of_it_is_cut_off(loop, transport, connection):
    transport.waiting = 20 << 20
    connection.pause_writing()
    loop.until(connections.STUCK - 1)
    assert not transport.aborted
    loop.until(connections.STUCK)
    assert transport.aborted
