"""Where processes listen: ports that a former life had, hosts of IPv6."""

from __future__ import annotations

import socket

from ardea.protocol.lane import Lane


def test_a_manager_whose_ports_another_process_has_taken_listens_at_free_ones(manager):
    """Each of its lives would find the same ports taken; the master tells other managers where it is."""
    with socket.socket() as one, socket.socket() as two:
        for held in (one, two):
            held.bind(("127.0.0.1", 0))
        taken = {Lane.CONTROL: one.getsockname()[1], Lane.DATA: two.getsockname()[1]}
        ports = manager(taken).ports
    assert ports.keys() == taken.keys()
    assert not {0, *taken.values()} & {*ports.values()}
