"""A relay between a client and a ZooKeeper server that loses a transaction's request, or its answer."""

from __future__ import annotations

import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

MULTI = 14


class Lose(enum.Enum):
    """What of the next transaction is lost, with the connection."""

    REQUEST = enum.auto()
    ANSWER = enum.auto()


class Relay:
    """Listens on 127.0.0.1:``port`` and passes all on to ``target``."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._plan: list[Lose | None] = []
        self._meanwhile: Callable[[], object] = bool
        self._open: set[socket.socket] = set()
        self._refuses = False
        self._threads = [threading.Thread(target=self._accept)]
        self.transactions = 0

    def lose(self, *plan: Lose | None, meanwhile: Callable[[], object] = bool) -> None:
        """What to do with the next transactions; ``meanwhile`` is called while the client has no connection."""
        self._plan, self._meanwhile = list(plan), meanwhile

    def cut(self) -> None:
        """Ends all connections."""
        for end in tuple(self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Ends all connections, and each that comes, until :meth:`admit`."""
        self._refuses = True
        self.cut()

    def admit(self) -> None:
        """After :meth:`refuse`."""
        self._refuses = False

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                if self._refuses:
                    client.close()
                    continue
                thread = threading.Thread(target=self._connection, args=[client])
                self._threads.append(thread)
                thread.start()

    def _connection(self, client: socket.socket) -> None:
        """Requests, one after the other; answers go back on a thread of their own until one is to be lost."""
        deaf, answered = threading.Event(), threading.Event()
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._target)) as server:
            self._open |= {client, server}
            answers = threading.Thread(target=self._answers, args=[server, client, deaf, answered])
            answers.start()
            try:
                self._requests(client, server, deaf, answered)
            finally:
                self._open -= {client, server}
                for end in (client, server):
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)
                answers.join()

    def _requests(
        self, client: socket.socket, server: socket.socket, deaf: threading.Event, answered: threading.Event
    ) -> None:
        first = True
        while (frame := _frame(client)) is not None:
            lost = None
            if not first and struct.unpack_from(">i", frame, 8)[0] == MULTI:
                self.transactions += 1
                lost = self._plan.pop(0) if self._plan else None
            first = False
            if lost is Lose.ANSWER:
                deaf.set()
                server.sendall(frame)
                assert answered.wait(10), "the server does not answer"
            elif lost is None:
                server.sendall(frame)
            if lost is not None:
                self._meanwhile()
                return

    @staticmethod
    def _answers(
        server: socket.socket, client: socket.socket, deaf: threading.Event, answered: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if deaf.is_set():
                    answered.set()
                else:
                    client.sendall(data)


def _frame(source: socket.socket) -> bytes | None:
    """One whole message with its length; None at the end."""
    head = _exactly(source, 4)
    return head and head + _exactly(source, struct.unpack(">i", head)[0])


def _exactly(source: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        if not (part := source.recv(size - len(data))):
            return None
        data += part
    return data
