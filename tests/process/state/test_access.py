"""What tasks on Kubernetes may reach of a real ZooKeeper: their own part, and nothing else."""

from __future__ import annotations

import base64

import pytest

from ardea.errors import StateError
from ardea.scheduler.kubernetes import access
from ardea.scheduler.kubernetes.manifest_inputs import Defaults
from ardea.scheduler.kubernetes.submission import Options, prepare
from ardea.state import Create, Set, open_state, paths
from ardea.state.address import Access
from ardea.trident.store import StateManagerStore
from tests.process.scheduler.kubernetes.running import TOPOLOGIES
from tests.unit.scheduler.kubernetes.fake import FakeCluster

OFFSETS = "/trident/Exact/lines/coordinator/0"


@pytest.fixture
def granted(server, root, tmp_path):
    """``granted(namespace)``: a topology's definition, its state opened as its master does and as its tasks do."""
    opened, clusters = [], {}

    def grant(name="here"):
        cluster = clusters.setdefault(name, FakeCluster(name))
        state = f"zookeeper://127.0.0.1:{server.servers[0].port}{root}"
        inputs = prepare(str(TOPOLOGIES / "exact.py"), {}, Options(), Defaults(image="i", state=state)).inputs
        access.grant(cluster, inputs)
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        for file, value in cluster.find("Secret", "exact-state")["data"].items():
            (folder / file).write_bytes(base64.b64decode(value))
        mounted = Access.read(folder)
        master = open_state(inputs.definition.state, f"{inputs.id}:s3cr3t")
        tasks = open_state(mounted.address, mounted.credential)
        opened.extend((master, tasks))
        return inputs, master, tasks, mounted

    yield grant
    for state in opened:
        state.close()


def refused(*acts):
    for act in acts:
        with pytest.raises(StateError, match="does not allow it; nothing was changed"):
            act()


def test_tasks_reach_their_own_part_and_nothing_else(granted):
    inputs, master, tasks, mounted = granted()
    known = paths.execution_state(inputs.id)
    master.create(known, b"running")
    store = StateManagerStore(tasks)
    store.put(OFFSETS, [7, 1])
    assert store.get(OFFSETS) == [7, 1]
    assert store.children("/trident/Exact/lines") == ("coordinator",)

    intruder = open_state(inputs.definition.state, mounted.credential)
    refused(
        lambda: intruder.get(known),
        lambda: intruder.children("/executionstate"),
        lambda: intruder.transaction([Set(known, b"killed", 1)]),
        lambda: intruder.transaction([Create(paths.master(inputs.id), b"me")]),
        lambda: intruder.delete(known),
    )
    intruder.close()
    assert master.get(known).data == b"running"


def test_others_tasks_and_strangers_reach_none_of_it(granted):
    *_, tasks, mounted = granted("one")
    StateManagerStore(tasks).put(OFFSETS, [7, 1])
    *_, theirs = granted("two")
    assert theirs.address != mounted.address
    for credential in (theirs.credential, ""):
        stranger = open_state(mounted.address, credential)
        refused(
            lambda stranger=stranger: stranger.get(OFFSETS),
            lambda stranger=stranger: stranger.set(OFFSETS, b"[1,1]", 1),
            lambda stranger=stranger: stranger.delete(OFFSETS),
            lambda stranger=stranger: stranger.create("/trident/Exact/lines/meta/1", b"{}"),
        )
        stranger.discard()
        stranger.close()
    assert StateManagerStore(tasks).get(OFFSETS) == [7, 1]


def test_the_next_topology_of_the_name_goes_on(granted):
    inputs, master, tasks, _ = granted()
    StateManagerStore(tasks).put(OFFSETS, [7, 1])
    known = paths.execution_state(inputs.id)
    master.create(known, b"running")
    master.delete(known)
    master.discard()
    later, _, tasks, _ = granted()
    assert later.id != inputs.id
    assert StateManagerStore(tasks).get(OFFSETS) == [7, 1]
