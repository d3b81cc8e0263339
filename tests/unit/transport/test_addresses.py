"""Where processes listen: ports that a former life had, hosts of IPv6."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from ardea.protocol.addresses import tcp_address
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import Address, Plan
from ardea.transport import Bound


def test_a_manager_whose_ports_another_process_has_taken_listens_at_free_ones(manager):
    """Each of its lives would find the same ports taken; the master tells other managers where it is."""
    with socket.socket() as one, socket.socket() as two:
        for held in (one, two):
            held.bind(("127.0.0.1", 0))
        taken = {Lane.CONTROL: one.getsockname()[1], Lane.DATA: two.getsockname()[1]}
        ports = manager(taken).ports
    assert ports.keys() == taken.keys()
    assert not {0, *taken.values()} & {*ports.values()}


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "tcp://127.0.0.1:5"),
        ("pod.streams", "tcp://pod.streams:5"),
        ("fd00::a:5", "tcp://[fd00::a:5]:5"),
    ],
)
def test_a_host_of_ipv6_stands_in_brackets(host, address):
    assert tcp_address(host, 5) == address


def test_a_port_is_chosen_at_a_host_that_has_zeros(ctx, ipv6):
    bound = Bound(ctx)
    assert bound.bind(tcp_address(ipv6.replace("::", "0:0:0:0:0:0:0:"), 0))
    bound.close()


def test_a_manager_reaches_another_one_that_has_an_address_of_ipv6(manager, ipv6, deadline):
    here, there = manager({}), manager({}, ipv6)
    ports = {"data_port": there.ports[Lane.DATA], "control_port": there.ports[Lane.CONTROL]}
    here.reach(Plan(addresses=[Address(container=2, host=ipv6, **ports)]))
    heard = []

    def take(_number, _source, lane, frames, _now, *, peers):
        heard.append((lane, frames, peers))

    def arrived():
        there.receive(there.poller.wait(0.05), 0.0, take)
        return len(heard) == len(Lane)

    for lane in Lane:
        here.to_manager(SimpleNamespace(key=2), lane, [b"said"])
    deadline(arrived, "both lanes have brought a message")
    assert sorted(heard) == [(lane, [b"said"], True) for lane in sorted(Lane)]
