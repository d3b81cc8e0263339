"""Who gets a connection to the real processes of a topology."""

from __future__ import annotations

import os
import stat
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from ardea.plan.definition import Definition
from ardea.scheduler import keys
from ardea.state import open_state, paths, records
from ardea.state.records import MasterLocation
from ardea.stream_manager.container_setup import Remembered
from ardea.transport import CALLERS, KEY_FILE, Keyring, holder, pair
from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster

PATIENCE = 2.5
"""Seconds of a stranger at the door; ZeroMQ's handshake takes milliseconds, and is tried again after two seconds."""
LONGEST = 20.0
"""Seconds that those who belong there have, on a busy machine."""


def let_in(port: int, server: str, who: dict[str, Keyring | None], expected: set[str]) -> set[str]:
    """Those with whom ZeroMQ's handshake succeeds; ``server``: whose key they expect there."""
    ctx, poller, dealers, monitors = zmq.Context(), zmq.Poller(), [], {}
    try:
        for name, ring in who.items():
            dealer = ctx.socket(zmq.DEALER)
            dealers.append(dealer)
            if ring is not None:
                dealer.curve_serverkey, dealer.curve_publickey = ring.of(server), ring.public
                dealer.curve_secretkey = ring.secret
            monitors[dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)] = name
            dealer.connect(f"tcp://127.0.0.1:{port}")
        for monitor in monitors:
            poller.register(monitor, zmq.POLLIN)
        found, began = set(), time.monotonic()
        while (left := began + (PATIENCE if found >= expected else LONGEST) - time.monotonic()) > 0:
            for monitor, _ in poller.poll(left * 1000):
                assert recv_monitor_message(monitor)["event"] == zmq.EVENT_HANDSHAKE_SUCCEEDED
                found.add(monitors[monitor])
        return found
    finally:
        for dealer in dealers:
            dealer.disable_monitor()
            dealer.close(0)
        for monitor in monitors:
            monitor.close(0)
        ctx.term()


def ports(topology: Running) -> dict[str, tuple[int, str]]:
    """Every TCP port that a process of the topology's links has, and whose key is there."""
    found = {}
    for file in sorted(topology.folder.glob("container-*/manager.plan")):
        known = msgspec.msgpack.decode(file.read_bytes(), type=Remembered)
        name = file.parent.name
        found[f"{name} data"] = known.data_port, name
        found[f"{name} control"] = known.control_port, name
    path = paths.master(topology.run.topology)
    with open_state(topology.run.submission.definition.state) as state:
        found["master"] = records.decode(state.get(path).data, MasterLocation, path).port, holder(0)
    return found


def test_strangers_and_other_topologies_get_no_connection(tmp_path):
    with Running("survivors.py", tmp_path) as topology:
        topology.running()
        definition = Definition.read(topology.folder / "definition")
        own = {name: read(topology.folder, name, definition.keys) for name in definition.keys}
        other, secrets = keys.issue(msgspec.structs.replace(definition, keys={}))
        everybody = {
            **own,
            "nobody": None,
            "a key of its own": Keyring(pair()[1], definition.keys),
            "another topology's key": Keyring(secrets[holder(2)], definition.keys),
            "another topology's key, for its own": Keyring(secrets[holder(2)], other.keys),
        }
        containers = {holder(0), holder(1), holder(2)}
        listening = ports(topology)
        assert len(listening) == 5
        expected = {where: containers | ({CALLERS} if where == "master" else set()) for where in listening}
        with ThreadPoolExecutor(len(listening)) as pool:
            asks = {
                where: pool.submit(let_in, port, server, everybody, expected[where])
                for where, (port, server) in listening.items()
            }
        assert {where: ask.result() for where, ask in asks.items()} == expected
        topology.grows("acked", "numbers-0", 1000)
        assert {process["life"] for process in topology.processes().values()} == {1}


def test_secret_keys_are_their_owners_alone_and_in_no_other_file(tmp_path):
    with Running("survivors.py", tmp_path) as topology:
        topology.running()
        files = sorted(topology.folder.rglob(KEY_FILE))
        assert len(files) == 4
        for file in files:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            secret = file.read_bytes().strip()
            assert holders(tmp_path, secret) == [file]
        lines = [Path(f"/proc/{p['pid']}/cmdline").read_bytes() for p in topology.processes().values()]
        assert not any(file.read_bytes().strip() in line for file in files for line in lines)


def holders(folder: Path, text: bytes) -> list[Path]:
    """The files that hold the text, while the topology writes files, renames them, and removes folders."""
    found = []
    for path in (Path(parent, name) for parent, _, names in os.walk(folder) for name in names):
        with suppress(FileNotFoundError):
            if path.is_file() and text in path.read_bytes():
                found.append(path)
    return found


def read(folder: Path, name: str, known: dict[str, str]) -> Keyring:
    ring = Keyring.read(keys.keys_of(folder if name == CALLERS else folder / name), known)
    assert ring is not None
    return ring
