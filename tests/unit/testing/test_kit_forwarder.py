"""Cuts and delays between real sockets on the loopback."""

from __future__ import annotations

import socket
import time

import pytest

from ardea.testing.kit import Forwarder
from ardea.transport import PROXY, Bound, Dialled, context

PAIR = ("manager-1", "manager-2")


@pytest.fixture
def wire(monkeypatch, deadline):
    """A socket of manager 2's that manager 1 dials through the forwarder."""
    ctx = context()
    bound = Bound(ctx)
    port = bound.bind("tcp://127.0.0.1:0")
    with Forwarder({port: "manager-2"}.get) as forwarder:
        monkeypatch.setenv(PROXY, forwarder.address)
        dialled = Dialled(ctx, b"m1", f"tcp://127.0.0.1:{port}")
        try:
            yield Wire(forwarder, bound, dialled, deadline)
        finally:
            dialled.close()
            bound.close()
            ctx.destroy(linger=0)


class Wire:
    def __init__(self, forwarder, bound, dialled, deadline):
        self.forwarder, self.bound, self.dialled, self.deadline = forwarder, bound, dialled, deadline

    def send(self, *numbers):
        for number in numbers:
            self.dialled.send([b"%d" % number])

    def arrived(self):
        return [int(frames[0]) for _, frames in self.bound.receive(10_000)]

    def arrives(self, numbers):
        """Waits until these have come, in this order."""
        seen = []
        self.deadline(lambda: seen.extend(self.arrived()) or len(seen) >= len(numbers), f"{len(numbers)} messages come")
        assert seen == numbers

    def connected(self):
        return frozenset(PAIR) in self.forwarder.links()

    def repaired(self):
        """Sends until something comes: ZeroMQ drops what it has for a connection that is reset."""
        self.deadline(lambda: self.send(-1) or self.arrived(), "a message comes")


def test_it_names_both_ends_and_passes_everything_on(wire):
    wire.send(*range(5000))
    wire.arrives(list(range(5000)))
    assert wire.forwarder.links() == {frozenset(PAIR)}
    assert wire.bound.send(b"m1", [b"back"])
    assert wire.deadline(lambda: list(wire.dialled.receive(1)), "the answer comes") == [[b"back"]]


def test_a_cut_ends_connections_and_lets_none_live_until_it_is_healed(wire):
    wire.send(1)
    wire.arrives([1])
    wire.forwarder.cut(*reversed(PAIR))
    wire.deadline(lambda: not wire.connected(), "the connection is gone")
    wire.send(*range(100))
    begin = time.monotonic()
    wire.deadline(lambda: time.monotonic() > begin + 0.5 or wire.arrived(), "half a second has passed")
    assert time.monotonic() > begin + 0.5, "nothing comes through a link that is cut"
    wire.forwarder.heal(*PAIR)
    wire.repaired()


def test_a_cut_elsewhere_is_nobody_elses(wire):
    wire.send(1)
    wire.arrives([1])
    wire.forwarder.cut("manager-1", "manager-3")
    wire.forwarder.delay("manager-2", "master", 9.0)
    wire.send(2)
    wire.arrives([2])


def test_a_delay_holds_both_directions_and_keeps_their_order(wire):
    wire.send(1)
    wire.arrives([1])
    wire.forwarder.delay(*PAIR, 0.4)
    begin = time.monotonic()
    wire.send(*range(2000))
    wire.arrives(list(range(2000)))
    assert time.monotonic() >= begin + 0.4
    begin = time.monotonic()
    wire.bound.send(b"m1", [b"back"])
    wire.deadline(lambda: list(wire.dialled.receive(1)), "the answer comes")
    assert time.monotonic() >= begin + 0.4
    wire.send(1, 2)
    begin = time.monotonic()
    wire.deadline(lambda: time.monotonic() > begin + 0.2, "they are on their way")
    wire.forwarder.heal(*PAIR)
    wire.send(3, 4)
    wire.arrives([1, 2, 3, 4])


def test_a_port_where_nobody_listens_is_said_and_tried_again(monkeypatch, deadline):
    ctx = context()
    reserved = socket.socket()  # so that no other test listens there meanwhile
    reserved.bind(("127.0.0.1", 0))
    port = reserved.getsockname()[1]
    with Forwarder(lambda _: "manager-2") as forwarder:
        monkeypatch.setenv(PROXY, forwarder.address)
        dialled = Dialled(ctx, b"m1", f"tcp://127.0.0.1:{port}")
        dialled.send([b"late"])
        begin = time.monotonic()
        deadline(lambda: time.monotonic() > begin + 1.0, "it has tried a few times")
        second = Bound(ctx)
        reserved.close()
        second.bind(f"tcp://127.0.0.1:{port}")
        assert deadline(lambda: [f for _, f in second.receive(1)], "it comes") == [[b"late"]]
        for endpoint in (dialled, second):
            endpoint.close()
        ctx.destroy(linger=0)
