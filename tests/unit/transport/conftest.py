"""What several files ask for."""

from __future__ import annotations

import secrets

import pytest

from ardea.stream_manager.container_setup import ContainerSetup
from ardea.stream_manager.sockets import Sockets
from ardea.transport import context, ipc_address


@pytest.fixture
def ctx():
    made = context()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def manager(tmp_path):
    """``manager(ports, host)``: the sockets of a stream manager whose former life had these ports."""
    made = []

    def opened(ports, host="127.0.0.1"):
        control, data, metrics = (ipc_address(tmp_path, secrets.token_hex(8)) for _ in range(3))
        made.append(Sockets(ContainerSetup(1, tmp_path, control, data, metrics, host), {}, ports))
        return made[-1]

    yield opened
    for sockets in made:
        sockets.close()
        sockets.destroy()
