"""When a metrics manager ends: once the topology is over, and all others of its container have ended."""

from __future__ import annotations

import secrets

import pytest

from ardea import Topology
from ardea.errors import ExitCode
from ardea.metrics import Identity, Registry
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.state import open_state, paths
from ardea.state.records import ExecutionState, RunState, encode
from ardea.supervision import records
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import Dialled, ipc_address
from metrics_manager.process import END_LOOK_EVERY, LOOK_EVERY, MetricsManagerProcess


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


@pytest.fixture
def definition(tmp_path):
    location = f"file://{tmp_path}/state"
    with open_state(location) as state:
        state.create(paths.execution_state("pair-1"), encode(ExecutionState(RunState.RUNNING)))
    shape = shape_of(Pair.plan({"heron.metricsmgr.port": 0}))
    return Definition(topology="pair-1", state=location, location="p", config={}, shape=shape, packing=b"")


@pytest.fixture
def manager(tmp_path, definition, monkeypatch):
    monkeypatch.setenv("ARDEA_NAME", "metrics-manager")
    address = ipc_address(tmp_path, f"{secrets.token_hex(4)}-metrics")
    made = MetricsManagerProcess(definition, 1, tmp_path, address, "127.0.0.1")
    made.sender = Dialled(made._context, b"t1-x", address)
    others(tmp_path, "running")
    yield made
    made.sender.close()
    made._close()


def others(folder, state):
    processes = {"metrics-manager": {"state": "running"}, "keep-0": {"state": state}}
    records.write_status(folder, {"processes": processes})


@pytest.fixture
def snapshot(manager, deadline):
    """One has arrived."""

    def send():
        registry = Registry(Identity("pair-1", 1, "keep-0", "keep", 1, 1))
        manager.sender.send([registry.snapshot()])
        deadline(lambda: manager.poller.wait(0.1), "a snapshot")

    return send


def over(definition):
    with open_state(definition.state) as state:
        node = state.get(paths.execution_state("pair-1"))
        state.set(paths.execution_state("pair-1"), encode(ExecutionState(RunState.SUCCEEDED)), node.version)


def test_a_snapshot_right_behind_a_look_is_followed_by_another_look(manager, snapshot):
    """It may be the last of all; the next look of its own would be half a second later."""
    assert manager._turn(100.0) == 100.0 + LOOK_EVERY
    snapshot()
    assert manager._turn(100.01) == 100.0 + END_LOOK_EVERY
    assert manager._turn(100.0 + END_LOOK_EVERY) == 100.0 + LOOK_EVERY


def test_it_ends_at_the_second_look_that_finds_it_alone(manager, snapshot, definition, tmp_path):
    manager._turn(100.0)
    over(definition)
    snapshot()
    assert manager._turn(100.2) == 100.2 + END_LOOK_EVERY
    others(tmp_path, "finished")
    manager._turn(100.25)
    assert manager.exit_code is None  # what the others have sent last may be on its way
    manager._turn(100.30)
    assert manager.exit_code is ExitCode.OK


def test_sinks_get_a_batch_an_interval_however_often_the_manager_looks_and_one_at_the_end(manager, monkeypatch):
    flushed = []
    monkeypatch.setattr(manager.manager, "flush", lambda now, timestamp: flushed.append(now))
    for turn in range(5):
        manager._turn(100.0 + turn * LOOK_EVERY)
    assert flushed == [100.0, 101.0, 102.0]
    manager._stop(ExitCode.OK)
    assert manager.run() is ExitCode.OK
    assert len(flushed) == 4
