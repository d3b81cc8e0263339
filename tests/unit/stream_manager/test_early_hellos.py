"""Who says hello to a manager that has no plan yet is answered as soon as it has one."""

from __future__ import annotations

import secrets
import time

import pytest

from ardea import Topology
from ardea.errors import ExitCode
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import EXIT, HELLO, Header, Hello, Order, Plan
from ardea.scheduler.packing import packing_for
from ardea.state import open_state
from ardea.stream_manager.process import Place, StreamManagerProcess
from ardea.stream_manager.shell import LARGEST_EARLY
from ardea.testing import CollectBolt, RowsSpout
from ardea.transport import Dialled, caller, ipc_address
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
def manager(tmp_path, definition):
    addresses = [ipc_address(tmp_path, f"{secrets.token_hex(4)}-{name}") for name in ("control", "data", "metrics")]
    made = StreamManagerProcess(definition, Place(1, tmp_path, *addresses, "127.0.0.1"))
    yield made
    made._close()


@pytest.fixture
def task(manager):
    """The control lane of task 1."""
    dialled = Dialled(manager._context, caller("t", 1), manager.place.control)
    yield dialled
    dialled.close()


@pytest.fixture
def hears(manager, deadline):
    """The manager takes what comes until it is enough."""

    def step(enough):
        manager._receive(manager.poller.wait(0.1), time.monotonic())
        return enough()

    return lambda enough: deadline(lambda: step(enough), "the manager has heard it")


def say(task):
    body = Hello(protocol=PROTOCOL, topology="pair-1", task=1, epoch=1, build=1)
    task.send([Header(kind=HELLO, sender=1).SerializeToString(), body.SerializeToString()])


def plan(definition):
    return Plan(epoch=1, build=1, shape=shape_to_bytes(definition.shape), packing=definition.packing)


def test_a_hello_ahead_of_the_plan_is_answered_with_it(manager, task, hears, definition, deadline):
    say(task)
    say(task)
    hears(lambda: manager.shell._early)
    manager.shell._planned(plan(definition))
    answers = deadline(lambda: list(task.receive(16)), "an answer")
    assert (HELLO, 1) in [(header.kind, header.receiver) for header in (Header.FromString(a[0]) for a in answers)]
    assert manager.shell.manager.members.instances[1].peer == 1
    assert not manager.shell._early


def test_large_messages_and_those_of_strangers_are_not_kept(manager, task, hears):
    stranger = Dialled(manager._context, b"who", manager.place.control)
    stranger.send([b"", b"x"])
    task.send([b"", b"x" * (LARGEST_EARLY + 1)])
    hears(lambda: manager._instances[Lane.CONTROL].statistics.received == 2)
    stranger.close()
    assert not manager.shell._early


def test_bytes_that_are_no_message_do_not_end_it(manager, task, hears, definition):
    """From whoever calls itself a task, ahead of the plan and behind it."""
    task.send([b"not a header", b"\xff"])
    hears(lambda: manager.shell._early)
    manager.shell._planned(plan(definition))
    task.send([Header(kind=HELLO, sender=1).SerializeToString(), b"\xff"])
    statistics = manager._instances[Lane.CONTROL].statistics
    hears(lambda: statistics.received == 2)
    assert manager._malformed == 2
    assert manager.shell.manager.members.instances[1].peer == 0


def test_the_end_ahead_of_the_plan_ends_the_manager(manager):
    """tests/unit/testing/test_cluster.py: so does that of a simulated cluster."""
    manager.shell._exit(Order(kind=EXIT, term=1))
    assert manager.run() is ExitCode.OK
