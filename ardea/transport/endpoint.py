"""ZeroMQ sockets as this project uses them: never blocking, bounded by the flow above them.

High-water marks are off on purpose for what is numbered: what may wait in a socket is bounded by credit (data) and by
the megabyte of unconfirmed control messages, and a socket that drops or blocks behind those would only hide a mistake.
What is said again and again without a number has no such bound, and a socket that says it takes so much of it at most.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zmq

from ardea.errors import ClusterError
from ardea.protocol.addresses import IPV6, TCP
from ardea.protocol.checked import MalformedError
from ardea.protocol.lane import Message
from ardea.transport.curve import Door, Keyring, introduce
from ardea.transport.framing import pack, unpack
from ardea.transport.sockets import LINGER_MS, Context, make_socket

ZERO_COPY_FROM = 256 * 1024
PROXY = "ARDEA_SOCKS_PROXY"
"""HOST:PORT of a SOCKS5 server in this variable: TCP connections are dialled through it (docs/testing.md).

It is asked for IDENTITY.HOST instead of HOST.
"""
SOCKETS = 1023
"""At most, of one process; ZeroMQ's own default."""
FEW = 16
"""Messages that wait for a peer that is away, where each says all that those before it said."""
MANY_SOCKETS = 1 << 15
"""Of a stream manager, which dials each other one twice; room for twice as many takes 0.8 MiB."""


@dataclass(slots=True)
class EndpointStatistics:
    """Counters only grow."""

    sent: int = 0
    received: int = 0
    unroutable: int = 0
    malformed: int = 0


def context(sockets: int = SOCKETS) -> Context:
    """One for the process, of so many sockets at most; closed by :meth:`zmq.Context.destroy` at the end."""
    made = zmq.Context(io_threads=1)
    made.set(zmq.MAX_SOCKETS, sockets)
    return made


def ipc_address(folder: Path, name: str) -> str:
    """An address for processes of one container.

    On Linux in the abstract namespace, which leaves no file behind whoever is killed; elsewhere a file in ``folder``.
    """
    abstract = sys.platform.startswith("linux")
    return f"ipc://@ardea-{name}" if abstract else f"ipc://{folder / name}"


class Bound:
    """A socket that others dial; each peer has an identity."""

    def __init__(self, ctx: Context, door: Door | None = None) -> None:
        """``door``: who may dial it; None: anybody."""
        self.statistics = EndpointStatistics()
        self._socket = make_socket(ctx, zmq.ROUTER)
        if door is not None:
            door.guard(self._socket)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)

    def bind(self, address: str) -> int:
        """Binds; for ``tcp://host:0`` returns the port that was free, otherwise 0 or the port.

        Raises ClusterError if the address is taken or may not be used.
        """
        _allow(self._socket, address)
        try:
            self._socket.bind(f"{address[:-1]}*" if address.endswith(":0") else address)
        except zmq.ZMQError as error:
            raise ClusterError(
                f"cannot listen on {address}: {os.strerror(error.errno or 0)}",
                hint="another process has it; choose another port, or 0 for a free one",
            ) from error
        endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        return int(endpoint.rsplit(":", 1)[1]) if endpoint.startswith(TCP) else 0

    def receive(self, limit: int) -> Iterator[tuple[bytes, list[bytes]]]:
        """Up to ``limit`` messages that wait, as (identity, frames)."""
        for _ in range(limit):
            if not _waits(self._socket):
                return
            identity = self._socket.recv(_WAIT_NOT)
            frames = _receive(self._socket)
            if frames:
                self.statistics.received += 1
                yield identity, frames
            else:
                self.statistics.malformed += 1

    def send(self, identity: bytes | None, frames: Message) -> bool:
        """False: that peer is not connected, or unknown (None); the link's resend repairs it when it is."""
        if identity is None:
            self.statistics.unroutable += 1
            return False
        try:
            self._socket.send(identity, _MORE)
            _send(self._socket, frames)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            self.statistics.unroutable += 1
            return False
        self.statistics.sent += 1
        return True

    def close(self) -> None:
        """Sends what waits for up to a second."""
        self._socket.close(LINGER_MS)

    @property
    def pollable(self) -> zmq.Socket[bytes]:
        """For :class:`Poller`."""
        return self._socket


class Dialled:
    """A socket that dials one peer."""

    def __init__(
        self,
        ctx: Context,
        identity: bytes,
        address: str,
        keys: Keyring | None = None,
        peer: str = "",
        most: int = 0,
    ) -> None:
        """Begins to dial; it goes on for as long as the peer is away.

        ``keys``: the peer is reached only if it has the key of the name ``peer``, and knows ours; None: anybody.
        ``most``: messages that may wait for it; 0: any number.
        """
        self.statistics = EndpointStatistics()
        self.address = address
        self._socket = make_socket(ctx, zmq.DEALER)
        self._socket.setsockopt(zmq.IDENTITY, identity)
        self._socket.setsockopt(zmq.SNDHWM, most)
        if keys is not None:
            introduce(self._socket, keys, peer)
        _allow(self._socket, address)
        if (proxy := os.environ.get(PROXY)) and address.startswith(TCP):
            self._socket.setsockopt_string(zmq.SOCKS_PROXY, proxy)
            address = f"{TCP}{identity.decode()}.{address.removeprefix(TCP)}"  # tells the proxy who dials
        self._socket.connect(address)

    def receive(self, limit: int) -> Iterator[list[bytes]]:
        """Up to ``limit`` messages that wait."""
        for _ in range(limit):
            if not _waits(self._socket):
                return
            frames = _receive(self._socket)
            if frames:
                self.statistics.received += 1
                yield frames
            else:
                self.statistics.malformed += 1

    def send(self, frames: Message) -> bool:
        """False: so many wait that the socket takes no more."""
        try:
            _send(self._socket, frames)
        except zmq.Again:
            self.statistics.unroutable += 1
            return False
        self.statistics.sent += 1
        return True

    def close(self, linger_ms: int = LINGER_MS) -> None:
        """Sends what waits for up to so long."""
        self._socket.close(linger_ms)

    @property
    def pollable(self) -> zmq.Socket[bytes]:
        """For :class:`Poller`."""
        return self._socket


class Poller:
    """Waits for sockets, and for wake-ups from another thread."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._endpoints: dict[Any, Bound | Dialled] = {}
        self._doors: dict[Any, Door] = {}
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._poller.register(self._read, zmq.POLLIN)
        self._asleep = False

    def watch(self, endpoint: Bound | Dialled) -> None:
        """Wakes when the endpoint has a message."""
        self._poller.register(endpoint.pollable, zmq.POLLIN)
        self._endpoints[endpoint.pollable] = endpoint

    def keep(self, door: Door) -> None:
        """Answers whoever knocks there, while it waits."""
        self._poller.register(door.pollable, zmq.POLLIN)
        self._doors[door.pollable] = door

    def forget(self, endpoint: Bound | Dialled) -> None:
        """Watches it no longer."""
        self._poller.unregister(endpoint.pollable)
        del self._endpoints[endpoint.pollable]

    def wait(self, seconds: float, ready: Callable[[], bool] = lambda: False) -> set[Bound | Dialled]:
        """Until a message, a wake-up, or the time has passed; at once if ``ready``, asked after wake-ups count.

        Returns the endpoints that have messages.
        """
        self._asleep = True
        if ready():
            seconds = 0.0
        found = dict(self._poller.poll(max(0, int(seconds * 1000 + 0.999))))
        self._asleep = False
        if self._read in found:
            with contextlib.suppress(BlockingIOError):
                os.read(self._read, 4096)
        for socket, door in self._doors.items():
            if socket in found:
                door.answer()
        return {self._endpoints[socket] for socket in found if socket in self._endpoints}

    def wake(self) -> None:
        """From any thread."""
        if self._asleep:
            self._asleep = False
            with contextlib.suppress(BlockingIOError):
                os.write(self._write, b".")

    def close(self) -> None:
        """Closes the wake-up pipe."""
        os.close(self._read)
        os.close(self._write)


# pyzmq's multipart calls combine and look up enumerations for every frame, which costs more than the frame.
_EVENTS, _POLLIN, _RCVMORE = int(zmq.EVENTS), int(zmq.POLLIN), int(zmq.RCVMORE)
_WAIT_NOT = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)


def _allow(socket: zmq.Socket[bytes], address: str) -> None:
    """IPv6, for an address of it only: for names, ZeroMQ would then prefer it to an IPv4 at which somebody listens."""
    if address.startswith(IPV6):
        socket.setsockopt(zmq.IPV6, 1)


def _send(socket: zmq.Socket[bytes], frames: Message) -> None:
    *parts, last = pack(frames, ZERO_COPY_FROM)
    for part in parts:
        socket.send(part, _MORE, copy=len(part) < ZERO_COPY_FROM)
    socket.send(last, _WAIT_NOT, copy=len(last) < ZERO_COPY_FROM)


def _waits(socket: zmq.Socket[bytes]) -> bool:
    """Whether a message does.  To try and fail would give the interpreter lock away, and not get it back at once."""
    return bool(int(socket.getsockopt(_EVENTS)) & _POLLIN)


def _receive(socket: zmq.Socket[bytes]) -> Message | None:
    """None: a message that no process of a topology sends; it was dropped."""

    def more() -> bytes | None:
        return socket.recv(_WAIT_NOT) if socket.getsockopt(_RCVMORE) else None

    try:
        return unpack(socket.recv(_WAIT_NOT), more)
    except MalformedError:
        while more() is not None:
            pass
        return None
