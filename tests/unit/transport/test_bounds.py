"""What a stranger at a socket may cost: as little as a frame of a process."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ardea.transport import CALLERS, Bound, Dialled, Door, Keyring, Poller, holder, ipc_address, pair
from ardea.transport.framing import LARGEST_FRAME

MIB = 1 << 20
NAMES = (CALLERS, holder(1), holder(2))
READY = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\x02t1"
COMMAND, MESSAGE, LAST = 0x06, 0x02, 0x00


@pytest.fixture
def rings():
    pairs = {name: pair() for name in NAMES}
    known = {name: public for name, (public, _) in pairs.items()}
    return {name: Keyring(secret, known) for name, (_, secret) in pairs.items()}


def stranger(port: int, mechanism: bytes, *, greets: bool) -> socket.socket:
    """Somebody who has said ZeroMQ's greeting, and for ``greets`` all of its handshake."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    connection.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x01" + mechanism.ljust(20, b"\0") + bytes(32))
    received = b""
    while len(received) < 64:
        received += connection.recv(64 - len(received))
    if greets:
        connection.sendall(bytes([0x04, len(READY)]) + READY)
        connection.recv(256)
    return connection


def taken_of(connection: socket.socket, most: int) -> int:
    """How many of so many bytes the other end takes before it hangs up."""
    sent, block = 0, bytes(MIB)
    with contextlib.suppress(ConnectionError):
        while sent < most:
            sent += connection.send(block)
    return sent


@pytest.mark.parametrize(
    ("mechanism", "kind", "greets"),
    [
        (b"NULL", COMMAND, False),
        (b"NULL", MESSAGE, False),
        (b"NULL", COMMAND, True),
        (b"NULL", MESSAGE, True),
        (b"CURVE", COMMAND, False),
        (b"CURVE", MESSAGE, False),
    ],
)
def test_a_frame_of_gigabytes_is_not_even_begun(ctx, rings, mechanism, kind, greets):
    """The kernel's buffers take some; without a bound, the process would take all, and keep it."""
    door = Door(ctx, rings[holder(1)]) if mechanism == b"CURVE" else None
    bound = Bound(ctx, door)
    port = bound.bind("tcp://127.0.0.1:0")
    with stranger(port, mechanism, greets=greets) as connection:
        connection.sendall(struct.pack(">BQ", kind, 6 << 30))
        assert taken_of(connection, 256 * MIB) < 32 * MIB
    for end in (bound, door):
        if end is not None:
            end.close()


@pytest.mark.parametrize("keys", [True, False])
def test_every_message_of_a_process_arrives_whatever_its_size(ctx, rings, deadline, keys):
    """Frames that are larger than a socket takes travel in parts; encryption adds some bytes to each."""
    sizes = (0, LARGEST_FRAME - 1, LARGEST_FRAME, LARGEST_FRAME + 1, 3 * LARGEST_FRAME, 12 * MIB + 5)
    messages = [[b"header", b"%d" % size + bytes(size)[len(b"%d" % size) :], b"", b"tail"] for size in sizes]
    poller = Poller()
    door = Door(ctx, rings[holder(1)]) if keys else None
    if door is not None:
        poller.keep(door)
    bound = Bound(ctx, door)
    port = bound.bind("tcp://127.0.0.1:0")
    poller.watch(bound)
    dialled = Dialled(ctx, b"m2-1", f"tcp://127.0.0.1:{port}", rings[holder(2)] if keys else None, holder(1))
    for message in messages:
        dialled.send(message)
    arrived: list[list[bytes]] = []

    def everything() -> bool:
        poller.wait(0.05)
        arrived.extend(frames for _, frames in bound.receive(16))
        return len(arrived) == len(messages)

    deadline(everything, "all messages have arrived")
    assert arrived == messages
    assert not bound.statistics.malformed
    dialled.close(0)
    for end in (bound, door, poller):
        if end is not None:
            end.close()


LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sockets without a file are Linux's")
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
CALL = """
import os, socket, sys
os.setuid(int(sys.argv[2]))
end = socket.socket(socket.AF_UNIX)
end.settimeout(10)
try:
    end.connect("\\0" + sys.argv[1])
    end.sendall(b"\\xff" + bytes(8) + b"\\x7f\\3\\1NULL" + bytes(48))
    print(len(end.recv(10)))
except ConnectionError:
    print(0)
"""
"""Prints how much of a greeting comes back."""


def greeted(address: str, user: int) -> int:
    """What a process of that user gets to hear."""
    call = [sys.executable, "-I", "-S", "-c", CALL, address.removeprefix("ipc://@"), str(user)]
    return int(subprocess.run(call, capture_output=True, check=True, timeout=20).stdout)


@LINUX
@ROOT
def test_over_ipc_only_processes_of_the_same_user_are_let_in(ctx):
    bound = Bound(ctx)
    address = ipc_address(Path(), f"{secrets.token_hex(8)}-control")
    bound.bind(address)
    assert greeted(address, os.geteuid()) > 0
    assert greeted(address, 65534) == 0
    bound.close()
