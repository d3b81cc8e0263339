"""A SOCKS5 server through which managers reach one another and the master, and which cuts and delays their links.

Processes that find its address in ``ARDEA_SOCKS_PROXY`` dial through it, and ask for ``m2.127.0.0.1`` where they want
127.0.0.1 and are manager 2; who is dialled, says the port.  What they say to one another is encrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

CHUNK = 1 << 16
ON_ITS_WAY = 4 << 20
"""Bytes that a delayed direction holds before it reads no more."""
NAMES = {"m": "manager", "x": "metrics"}
"""What stands for whom in an identity such as ``m2``."""
VERSION, NO_AUTHENTICATION, NAME = 5, 0, 3
REACHED = bytes((VERSION, 0, 0, 1, 0, 0, 0, 0, 0, 0))


@dataclass(eq=False, slots=True)
class _Connection:
    """``source`` is "" for a stranger."""

    source: str
    port: int
    writers: tuple[StreamWriter, StreamWriter]

    def reset(self) -> None:
        """What is on its way is lost."""
        for writer in self.writers:
            writer.transport.abort()


@dataclass(slots=True)
class _Faults:
    """By the two names of a link."""

    cut: set[frozenset[str]] = field(default_factory=set)
    delays: dict[frozenset[str], float] = field(default_factory=dict)


class Forwarder:
    """Runs in a thread of its own while it is entered; the verbs are those of the simulated network."""

    def __init__(self, listener: Callable[[int], str]) -> None:
        """``listener`` names the process that listens on a port; asked anew each time, from the thread."""
        self.address = ""
        self._listener = listener
        self._faults = _Faults()
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="forwarder", daemon=True)

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._socket.getsockname())
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    # --- the verbs --------------------------------------------------------------------------------------------

    def cut(self, one: str, other: str) -> None:
        """Resets all connections between the two, and those that they make, until :meth:`heal`."""

        def act(pair: frozenset[str]) -> None:
            self._faults.cut.add(pair)
            for connection in self._connections:
                if self._pair(connection) == pair:
                    connection.reset()

        self._do(act, one, other)

    def delay(self, one: str, other: str, seconds: float) -> None:
        """Each byte between the two arrives so much later; 0 ends that."""
        self._do(lambda pair: self._faults.delays.update({pair: seconds}), one, other)

    def heal(self, one: str, other: str) -> None:
        """Ends a cut and a delay."""

        def act(pair: frozenset[str]) -> None:
            self._faults.cut.discard(pair)
            self._faults.delays.pop(pair, None)

        self._do(act, one, other)

    def links(self) -> set[frozenset[str]]:
        """The pairs that have a connection now."""
        found: set[frozenset[str]] = set()
        self._do(lambda _: found.update(self._pair(c) for c in self._connections if c.source), "", "")
        return found

    def _do(self, act: Callable[[frozenset[str]], object], one: str, other: str) -> None:
        """In the thread; returns when it is done."""

        async def call() -> None:
            act(frozenset((one, other)))

        asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    # --- the thread -------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        server = await asyncio.start_server(self._accepted, sock=self._socket)
        self._started.set()
        await self._end.wait()
        server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.sleep(0)  # aborted transports close their sockets in the next round

    def _accepted(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = self._loop.create_task(self._dialled(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dialled(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One connection, from its request to its end."""
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                source, port = await _requested(reader, writer)
                await self._connect(reader, writer, source, port)
        finally:
            writer.transport.abort()

    async def _connect(self, reader: StreamReader, writer: StreamWriter, source: str, port: int) -> None:
        # The answer is yes in any case: libzmq 4.3.5 aborts its process when a proxy refuses.
        writer.write(REACHED)
        if self._faults.cut and frozenset((source, self._listener(port))) in self._faults.cut:
            raise ConnectionResetError
        there, forth = await asyncio.open_connection("127.0.0.1", port)
        connection = _Connection(source, port, (writer, forth))
        self._connections.add(connection)
        try:
            back = asyncio.create_task(self._pass(connection, there, writer))
            try:
                await self._pass(connection, reader, forth)
            finally:
                back.cancel()
                await asyncio.gather(back, return_exceptions=True)
        finally:
            self._connections.discard(connection)
            forth.transport.abort()

    async def _pass(self, connection: _Connection, reader: StreamReader, writer: StreamWriter) -> None:
        """One direction; both end with the first that ends, as ZeroMQ's do."""
        due, held = 0.0, 0
        while data := await reader.read(CHUNK):
            now = self._loop.time()
            wait = self._faults.delays.get(self._pair(connection), 0.0) if self._faults.delays else 0.0
            if not wait and due <= now:
                held = 0
                writer.write(data)
            else:
                # The next representable time at least: timers of one time may go off in any order.
                due = max(now + wait, math.nextafter(due, math.inf))
                self._loop.call_at(due, _write, writer, data)
                held += len(data)
                if held > ON_ITS_WAY:
                    await asyncio.sleep(due - now)
                    held = 0
            await writer.drain()
        connection.reset()

    def _pair(self, connection: _Connection) -> frozenset[str]:
        return frozenset((connection.source, self._listener(connection.port)))


async def _requested(reader: StreamReader, writer: StreamWriter) -> tuple[str, int]:
    """Who the client is, and the port that it wants to reach."""
    _, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(bytes((VERSION, NO_AUTHENTICATION)))
    _, _, _, kind = await reader.readexactly(4)
    host = await reader.readexactly((await reader.readexactly(1))[0] if kind == NAME else 4)
    (port,) = struct.unpack(">H", await reader.readexactly(2))
    return _who(host.decode("latin-1").partition(".")[0]) if kind == NAME else "", int(port)


def _write(writer: StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)


def _who(identity: str) -> str:
    """The process with that identity; "" for a stranger."""
    kind, number = NAMES.get(identity[:1]), identity[1:].partition("-")[0]
    return f"{kind}-{number}" if kind and number.isdigit() else ""
