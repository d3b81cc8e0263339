"""A topology under every attack at once: it stays whole, and delivers every row."""

from __future__ import annotations

import os
import resource
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest

from ardea.plan.definition import Definition
from ardea.scheduler.keys import keys_of
from ardea.state import open_state, paths, records
from ardea.state.records import MasterLocation
from ardea.stream_manager.container_setup import Remembered
from ardea.transport import Keyring, holder, pair
from tests.process.engine.running import Running, unix_sockets
from tests.process.transport import attacks

pytestmark = pytest.mark.cluster

FILES, CROWD = 128, 100
"""What the shell lets a process have open, and the connections that each port is offered at a time."""
SECONDS = 3.0
TAKEN, GROWS_BY = 96 * attacks.MIB, 64 * attacks.MIB
"""Half of what each port is sent of frames that are too large, for the kernel keeps some; a process keeps nothing."""


def ports(topology: Running) -> dict[int, str]:
    """Every TCP port of its links, and whose key is there."""
    found = {}
    for file in sorted(topology.folder.glob("container-*/manager.plan")):
        known = msgspec.msgpack.decode(file.read_bytes(), type=Remembered)
        found[known.data_port] = found[known.control_port] = file.parent.name
    path = paths.master(topology.run.topology)
    with open_state(topology.run.submission.definition.state) as state:
        found[records.decode(state.get(path).data, MasterLocation, path).port] = holder(0)
    return found


def ring(topology: Running, folder: Path) -> Keyring:
    """Of a container, or of the callers."""
    keys = Keyring.read(keys_of(folder), Definition.read(topology.folder / "definition").keys)
    assert keys is not None
    return keys


def lives(topology: Running) -> dict[str, tuple[int, int]]:
    return {name: (int(p["pid"]), int(p["life"])) for name, p in topology.processes().items()}


def dropped(topology: Running, container: int) -> bool:
    """Whether a process of the container has dropped more than one attacker has said to one socket."""
    counts = topology.metrics(container, "ardea_process_malformed_messages_total").values()
    return max(counts, default=0) > attacks.MESSAGES


def attack(topology: Running, pool: ThreadPoolExecutor) -> dict[str, Future[int]]:
    """All that are not one another's: names say what each tries."""
    at, sockets = ports(topology), sorted(unix_sockets(topology.folder))
    known = Definition.read(topology.folder / "definition").keys
    ours, stranger = ring(topology, topology.folder / "container-1"), Keyring(pair()[1], known)
    tries = {f"announces at {port}": pool.submit(attacks.announce, port) for port in at}
    tries |= {f"noise at {port}": pool.submit(attacks.noise, port) for port in at}
    tries["crowd"] = pool.submit(attacks.crowd, [*at], CROWD, SECONDS)
    if os.geteuid() == 0:
        tries["foreigner"] = pool.submit(attacks.foreigner, sockets)
    for port, who in at.items():
        address = f"tcp://127.0.0.1:{port}"
        for name in (b"m1-0", b"m2-0", b"x1-0", b"c1"):
            tries[f"insider {name!r} at {port}"] = pool.submit(attacks.insider, address, name, ours, who)
        tries[f"uninvited at {port}"] = pool.submit(attacks.uninvited, address, None, who)
        tries[f"uninvited with a key at {port}"] = pool.submit(attacks.uninvited, address, stranger, who)
    for name in sockets:
        for task in (b"t1-0", b"t4-0"):
            tries[f"insider {task!r} at {name}"] = pool.submit(attacks.insider, f"ipc://{name}", task)
    return tries


@pytest.fixture
def few_files():
    """As a shell of which each process may have few files open; called, it lets this process have as many as it can."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_topology_stays_whole_and_delivers_every_row(tmp_path, few_files):
    with Running("survivors.py", tmp_path) as topology, ThreadPoolExecutor(64) as pool:
        topology.running()
        topology.grows("acked", "numbers-0", 500)
        before, resident = lives(topology), topology.resident()
        few_files()
        tries = attack(topology, pool)
        topology.until(lambda: all(each.done() for each in tries.values()), "all attacks are over", 60)
        results = {name: each.result() for name, each in tries.items()}

        topology.grows("acked", "numbers-0", 500)
        topology.grows("acked", "numbers-1", 500)
        assert lives(topology) == before, topology.logs()
        grown = {name: size - resident[name] for name, size in topology.resident().items() if name in resident}
        assert {name: size for name, size in grown.items() if size > GROWS_BY} == {}
        assert all(size < TAKEN for name, size in results.items() if name.startswith("announces"))
        assert not any(heard for name, heard in results.items() if name.startswith(("foreigner", "uninvited")))
        assert all(said for name, said in results.items() if name.startswith("insider"))
        assert results["crowd"] >= 5 * CROWD > FILES
        for container in (0, 1, 2):
            topology.until(partial(dropped, topology, container), f"container {container} has counted what it dropped")

        topology.raise_flag("enough")
        topology.finish()
        [arrived] = topology.left("arrived")
        ends = {str(index): spout["end"] for index, spout in enumerate(topology.left("numbers"))}
        assert arrived["different"] == arrived["ends"] == ends
