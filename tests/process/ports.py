"""Ports for servers that tests start: the kernel gives none of these to others."""

from __future__ import annotations

import itertools
import os
import socket

PORTS = range(12_000, 28_000)
"""Below those from which Linux and macOS choose."""
WORKERS = 16


def _mine() -> list[int]:
    """Those of this worker of pytest, from another one on in each run."""
    ports = PORTS[int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) % WORKERS :: WORKERS]
    begin = os.getpid() % len(ports)
    return [*ports[begin:], *ports[:begin]]


_left = itertools.cycle(_mine())


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 on which nobody listens; a server may end there and begin again."""
    return list(itertools.islice(filter(_free, _left), count))


def _free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
