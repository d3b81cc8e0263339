"""Who says hello to a manager that has no plan yet is answered as soon as it has one."""

from __future__ import annotations

import secrets
import time

import pytest

from ardea import Topology
from ardea.errors import ExitCode
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.wire_pb2 import HELLO, Header, Hello, Plan
from ardea.scheduler.packing import packing_for
from ardea.state import open_state, paths
from ardea.state.records import ExecutionState, RunState, encode
from ardea.stream_manager import shell
from ardea.stream_manager.container_setup import ContainerSetup
from ardea.stream_manager.process import StreamManagerProcess
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import Dialled, caller, context, ipc_address
from ardea.versions import PROTOCOL


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


@pytest.fixture
def definition(tmp_path):
    logical = Pair.plan({})
    packing = packing_to_bytes(packing_for(logical.config).pack(logical))
    state = f"file://{tmp_path}/state"
    open_state(state).close()
    return Definition(topology="pair-1", state=state, location="p", config={}, shape=shape_of(logical), packing=packing)


@pytest.fixture
def setup(tmp_path):
    addresses = [ipc_address(tmp_path, f"{secrets.token_hex(4)}-{name}") for name in ("control", "data", "metrics")]
    return ContainerSetup(1, tmp_path, *addresses, "127.0.0.1")


@pytest.fixture
def manager(definition, setup):
    made = StreamManagerProcess(definition, setup)
    yield made
    made.close()


@pytest.fixture
def call(setup):
    """Dials the control lane under a name."""
    mine, dialled = context(), []

    def begin(name):
        dialled.append(Dialled(mine, name, setup.control))
        return dialled[-1]

    yield begin
    for each in dialled:
        each.close()
    mine.destroy(linger=0)


@pytest.fixture
def task(call):
    return call(caller("t", 1))


@pytest.fixture
def hears(manager, deadline):
    """The manager takes what comes until it has taken so many messages."""

    def step(messages):
        manager.turn(time.monotonic() + 0.1)
        return manager.sockets.taken == messages

    return lambda messages: deadline(lambda: step(messages), "the manager has heard it")


def say(task):
    body = Hello(protocol=PROTOCOL, topology="pair-1", task=1, epoch=1, build=1)
    task.send([Header(kind=HELLO, sender=1).SerializeToString(), body.SerializeToString()])


def plan(definition):
    return Plan(
        epoch=1, build=1, shape=shape_to_bytes(definition.shape), packing=packing_to_message(definition.packing)
    )


def test_a_hello_ahead_of_the_plan_is_answered_with_it(manager, task, hears, definition, deadline):
    say(task)
    say(task)
    hears(2)
    manager.shell.recall(1, plan(definition))
    answers = deadline(lambda: list(task.receive(16)), "an answer")
    assert (HELLO, 1) in [(header.kind, header.receiver) for header in (Header.FromString(a[0]) for a in answers)]
    assert manager.shell.manager.members.instances[1].peer == 1


def test_large_messages_and_those_of_strangers_are_not_kept(manager, task, call, hears, definition, monkeypatch):
    """They leave the room to others."""
    monkeypatch.setattr(shell, "MOST_EARLY", 1)
    call(b"who").send([b"", b"x"])
    call(caller("t", 2)).send([b"", b"x" * (shell.LARGEST_EARLY + 1)])
    hears(2)
    say(task)
    hears(3)
    manager.shell.recall(1, plan(definition))
    assert manager.malformed == 0
    assert manager.shell.manager.members.instances[1].peer == 1


def test_bytes_that_are_no_message_do_not_end_it(manager, task, hears, definition):
    """From whoever calls itself a task, ahead of the plan and behind it."""
    task.send([b"not a header", b"\xff"])
    hears(1)
    manager.shell.recall(1, plan(definition))
    task.send([Header(kind=HELLO, sender=1).SerializeToString(), b"\xff"])
    hears(2)
    assert manager.malformed == 2
    assert manager.shell.manager.members.instances[1].peer == 0


def test_the_end_ahead_of_the_plan_ends_the_manager(manager, definition):
    """tests/simulation/testing/test_cluster.py: so does that of a simulated cluster."""
    with open_state(definition.state) as state:
        state.create(paths.execution_state("pair-1"), encode(ExecutionState(RunState.SUCCEEDED)))
    assert manager.run() is ExitCode.OK


def test_a_plan_that_cannot_be_written_is_said_once_until_it_can(manager, tmp_path, definition, caplog):
    in_the_way = tmp_path / "manager.tmp"
    for _ in range(2):
        in_the_way.mkdir()
        assert not manager.remember(1, plan(definition))
        assert not manager.remember(1, plan(definition))
        in_the_way.rmdir()
        assert manager.remember(1, plan(definition))
    said = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(said) == 2
    assert "manager.tmp" in said[0]
    assert "it is tried again each second" in said[0]
