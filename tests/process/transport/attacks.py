"""What somebody may try against the sockets of a topology.  Bounded in count and in time, and of this machine only."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence

from ardea.protocol.wire_pb2 import ASK, HELLO, Ask, Header, Hello, Kind
from ardea.transport import Dialled, Keyring, context
from ardea.versions import PROTOCOL
from tests.machine import out_of_patience, patient

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01" + b"CURVE".ljust(20, b"\0") + bytes(32)
MIB = 1 << 20
LINGER_MS = 10_000
"""For an attacker's messages, on a machine that is busy."""
MESSAGES = 300
"""That one attacker sends to one socket."""

FOREIGNER = """
import os, socket, sys
os.setuid(65534)
ready = b"\\5READY\\x0bSocket-Type\\0\\0\\0\\6DEALER\\x08Identity\\0\\0\\0\\4t1-x"
heard = 0
for name in sys.argv[1:] * 20:
    with socket.socket(socket.AF_UNIX) as end:
        end.settimeout(5)
        try:
            end.connect("\\0" + name)
            end.sendall(b"\\xff" + bytes(8) + b"\\x7f\\3\\1NULL" + bytes(48) + bytes([4, len(ready)]) + ready)
            heard += len(end.recv(10))
        except ConnectionError:
            pass
print(heard)
"""


def announce(port: int, times: int = 8, most: int = 24 * MIB) -> int:
    """Commands of gigabytes, ahead of any key; how many bytes of them were taken."""
    taken, block = 0, bytes(MIB)
    for _ in range(times):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
            connection.sendall(GREETING)
            connection.recv(64)
            connection.sendall(struct.pack(">BQ", 0x06, 6 << 30))
            sent = 0
            while sent < most:
                count = connection.send(block)
                sent, taken = sent + count, taken + count
    return taken


def noise(port: int, times: int = 40) -> None:
    """Bytes that are not ZeroMQ's."""
    chance = random.Random(port)
    for _ in range(times):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=3) as connection:
            connection.sendall(chance.randbytes(chance.randrange(1, 5000)))


def crowd(ports: Sequence[int], each: int, seconds: float) -> int:
    """Opens connections that say a byte of the greeting now and then, and others for those that are closed.  How many.

    A busy machine gets the time in which each port has been offered ``each``.
    """
    began, pause = time.monotonic(), threading.Event()
    there: dict[socket.socket, int] = {}
    opened = 0
    try:
        while time.monotonic() < began + seconds or (
            opened < each * len(ports) and not out_of_patience(began, 10 * seconds)
        ):
            for port in ports:
                for _ in range(each - sum(1 for p in there.values() if p == port)):
                    with contextlib.suppress(OSError):
                        there[socket.create_connection(("127.0.0.1", port), timeout=0.2)] = port
                        opened += 1
            for connection in [*there]:
                try:
                    connection.send(b"\xff")
                except OSError:
                    connection.close()
                    del there[connection]
            pause.wait(0.25)
    finally:
        for connection in there:
            connection.close()
    return opened


def foreigner(names: Sequence[str]) -> int:
    """Another user of the machine at the sockets of that name; how many bytes it gets to hear.  Root only."""
    call = [sys.executable, "-I", "-S", "-c", FOREIGNER, *(name.removeprefix("@") for name in names)]
    return int(subprocess.run(call, capture_output=True, check=True, timeout=patient(20)).stdout)


def hostile(chance: random.Random) -> Iterator[list[bytes]]:
    """Messages of every kind, with bodies that are none, that are cut off, or that belong to another kind."""
    body = Hello(
        protocol=PROTOCOL, topology="another", digest="no", task=1, container=1, died_on=b"x" * 9
    ).SerializeToString()
    while True:
        number = chance.choice([0, 1, 2, 99, 1 << 31, (1 << 32) - 1])
        header = Header(kind=chance.choice([*Kind.values(), 77]), source=number, target=number, rows=number)
        header.sender, header.sequence = chance.choice([0, 1, 1 << 32, (1 << 64) - 1]), chance.choice([0, 1, 99])
        header.ids, header.container, header.opens = chance.randrange(4), number, chance.random() < 0.5
        payload = [chance.randbytes(chance.randrange(20)) for _ in range(chance.randrange(6))]
        head = header.SerializeToString()
        yield chance.choice([[head, *payload], [head, body], [head, body[:7]], [head, *payload, *payload], payload])


def insider(address: str, identity: bytes, keys: Keyring | None = None, peer: str = "") -> int:
    """Somebody who gets in says what no process says; how much."""
    ctx, chance = context(), random.Random(identity)
    dialled = Dialled(ctx, identity, address, keys, peer)
    try:
        said = sum(dialled.send(message) for message, _ in zip(hostile(chance), range(MESSAGES), strict=False))
        dialled.send([Header(kind=ASK).SerializeToString(), Ask(verb="fail", token="guessed").SerializeToString()])
        return said
    finally:
        dialled.close(LINGER_MS)
        ctx.destroy(linger=LINGER_MS)


def uninvited(address: str, keys: Keyring | None, peer: str) -> int:
    """Somebody without a key, or with another one; how many messages come back."""
    ctx = context()
    dialled = Dialled(ctx, b"m1-0", address, keys, peer)
    try:
        dialled.send([Header(kind=HELLO, sender=1 << 40).SerializeToString(), Hello(container=1).SerializeToString()])
        dialled.pollable.poll(2500)
        return sum(1 for _ in dialled.receive(16))
    finally:
        dialled.close(0)
        ctx.destroy(linger=0)
