"""The streams of a command in a pod, whatever way they come and end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from websocket import WebSocketConnectionClosedException

from ardea.errors import Unreachable
from ardea.scheduler.kubernetes.exec import Exec


class Session:
    """What the connection brings, a piece for each look; after the last it is closed."""

    def __init__(self, *pieces, error=b"", code=0):
        self.pieces, self.error, self.returncode = list(pieces), error, code
        self.buffer, self.written = b"", []
        self.sock = SimpleNamespace(shutdown=lambda: self.written.append(b"closed"))

    def is_open(self):
        return bool(self.pieces)

    def update(self, timeout):
        piece = self.pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        self.buffer += piece

    def read_stdout(self, timeout=None):
        found, self.buffer = self.buffer, b""
        return found

    def peek_stdout(self):
        return self.buffer

    def peek_stderr(self):
        return b"" if self.pieces else self.error

    def read_stderr(self, timeout=None):
        return self.error

    def write_stdin(self, data):
        self.written.append(data)

    def close(self):
        self.pieces = []


def test_lines_come_whole_however_they_are_cut():
    command = Exec(Session(b"on", b"e\ntwo\nth", b"ree\n", b"rest"), "run it")
    assert [command.read_line(9.0) for _ in range(3)] == [b"one", b"two", b"three"]
    with pytest.raises(Unreachable, match=r"cannot run it: it has ended$"):
        command.read_line(9.0)


def test_what_it_said_at_its_end_is_told():
    command = Exec(Session(error=b"No module named ardea\n"), "run it")
    with pytest.raises(Unreachable, match="it has ended: No module named ardea"):
        command.read_line(9.0)


def test_a_line_that_does_not_come_is_none():
    session = Session(b"on", b"e\n")
    assert Exec(session, "run it").read_line(0.0) is None
    assert Exec(session, "run it").read_line(9.0) == b"one"


@pytest.mark.parametrize("error", [WebSocketConnectionClosedException("lost"), OSError("reset"), ValueError("no code")])
def test_a_broken_connection_is_unreachable(error):
    with pytest.raises(Unreachable, match="cannot run it: the connection broke"):
        Exec(Session(error), "run it").read_line(9.0)
    with pytest.raises(Unreachable, match="the connection broke"):
        Exec(Session(b"", error), "run it").run(print, print)


def test_it_runs_to_its_end():
    out, err = [], []
    assert Exec(Session(b"a", b"b", error=b"c", code=7), "run it").run(out.append, err.append) == 7
    assert (b"".join(out), err) == (b"ab", [b"c"])


def test_its_socket_is_closed_whoever_has_ended_it():
    session = Session()
    Exec(session, "run it").close()
    assert session.written == [b"closed"]


def test_much_is_written_in_pieces():
    session = Session(b"")
    Exec(session, "run it").write(b"x" * 70_000)
    assert [len(piece) for piece in session.written] == [32768, 32768, 4464]
