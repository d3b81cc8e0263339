"""No bytes of a peer end a process: they are acted upon, or dropped and counted."""

from __future__ import annotations

import contextlib
import math
from functools import partial

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ardea.errors import ArdeaError
from ardea.metrics import SERIES, Identity, Overview, Snapshot, by_component
from ardea.metrics.overview import Summary, TaskSummary
from ardea.metrics.registry import HistogramValue
from ardea.metrics_manager.server import MetricsManager
from ardea.plan.packing import PackingPlan
from ardea.plan.shape import shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.checked import MalformedError, checked
from ardea.protocol.wire_pb2 import (
    ACKS,
    ANSWER,
    CREDITS,
    HEARTBEAT,
    HELLO,
    INIT,
    MARKER,
    ONE,
    ORDER,
    PLAN,
    REGISTER,
    REPORT,
    ROWS,
    VERDICTS,
    Address,
    Answer,
    Credit,
    Header,
    Hello,
    Inspect,
    Load,
    Order,
    Pace,
    Plan,
    Registration,
    TaskReport,
)
from ardea.scheduler.control import MasterClient
from ardea.state import open_state
from ardea.versions import PROTOCOL
from tests.sizes import share

from .hostile import BOLT, DEFINITION, OTHERS_PACKING, SPOUT, Instance, Manager, ManagersMaster, TheMaster, messages

ENDS = {
    "a manager, of another": Manager,
    "a manager, of a spout": partial(Manager, SPOUT),
    "a manager, of a bolt": partial(Manager, BOLT),
    "a manager, of its master": ManagersMaster,
    "a master, of a manager": TheMaster,
    "a spout, of its manager": partial(Instance, "words"),
    "a bolt, of its manager": partial(Instance, "passed"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@settings(max_examples=share(60), suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(messages(), st.booleans()), min_size=1, max_size=6))
def test_messages_of_every_kind(end, said):
    hears = end().hears
    for (header, frames), knows in said:
        copy = Header()
        copy.CopyFrom(header)
        hears(copy, frames, knows=knows)


@pytest.mark.parametrize("component", ["words", "passed"])
@pytest.mark.parametrize("wanted", [Inspect(), Inspect(id="1", what="nothing"), Inspect(id="1", what="profile")])
def test_an_order_to_look_inside_that_makes_no_sense(component, wanted):
    instance = Instance(component)
    for target in ("", "another", f"{component}-0"):
        order = Order(target=target, inspect=wanted)
        instance.hears(Header(kind=ORDER), [order.SerializeToString()], knows=True)
    told = [TaskReport.FromString(each.frames[0]).inspected.refused for each in instance.inspector.ready]
    assert len(told) == bool(wanted.id)
    assert all("it cannot look" in each for each in told)


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4))
def test_bytes_are_a_message_or_malformed(frames):
    with contextlib.suppress(MalformedError):
        assert isinstance(checked(frames), Header)


def _hello(**fields) -> Hello:
    return Hello(protocol=PROTOCOL, **fields)


TRACKED = [b"\x91\x91\xa1a", bytes(8), bytes(8)]
SPECIFIC = {
    "roots that are no whole numbers": (
        "a manager, of a bolt",
        Header(kind=HELLO),
        [_hello(died_on=b"x" * 9)],
    ),
    "a life beyond all": (
        "a manager, of a bolt",
        Header(kind=HELLO, sender=1 << 63),
        [_hello(task=BOLT, build=1)],
    ),
    "a task's hello of a manager": (
        "a manager, of another",
        Header(kind=HELLO),
        [_hello(task=1, build=1)],
    ),
    "a manager's hello of a task": (
        "a manager, of a spout",
        Header(kind=HELLO),
        [_hello(topology="words")],
    ),
    "rows of somebody else": ("a manager, of a spout", Header(kind=ROWS, source=99, target=BOLT), [b"\x90"]),
    "trees of a marker": ("a manager, of a spout", Header(kind=MARKER, source=SPOUT, ids=ONE), []),
    "trees that a marker begins": ("a manager, of a spout", Header(kind=MARKER, source=SPOUT, opens=True), []),
    "trees that a bolt begins": ("a manager, of a bolt", Header(kind=INIT), [bytes(8), bytes(8)]),
    "columns of two lengths": ("a manager, of a spout", Header(kind=INIT), [bytes(8), bytes(16)]),
    "ids that are missing": ("a manager, of another", Header(kind=ROWS, ids=ONE, container=2), [b"\x90"]),
    "acks without columns": ("a manager, of another", Header(kind=ACKS, target=SPOUT), [b""]),
    "a report of another task": ("a manager, of a bolt", Header(kind=REPORT), [TaskReport(task=99)]),
    "a window of nothing": ("a manager, of another", Header(kind=HEARTBEAT, credits=[Credit(task=BOLT)]), []),
    "an unknown kind": ("a manager, of another", Header(kind=77), []),
    "a state that is none": ("a master, of a manager", Header(kind=REPORT), [TaskReport(task=SPOUT, state=9)]),
    "an address that is none": (
        "a master, of a manager",
        Header(kind=REGISTER),
        [Registration(container=1, address=Address(container=1, host="tcp://", data_port=1, control_port=1))],
    ),
    "loads that are no numbers": (
        "a spout, of its manager",
        Header(kind=CREDITS, loads=[Load(task=1, load=math.nan)]),
        [],
    ),
    "batches of no rows": ("a bolt, of its manager", Header(kind=CREDITS, paces=[Pace(task=5, rows=0)]), []),
    "verdicts of a manager to a bolt without columns": ("a bolt, of its manager", Header(kind=VERDICTS), []),
    "a plan that is none": ("a bolt, of its manager", Header(kind=PLAN), [Plan(build=1, packing=b"{")]),
    "a plan of another topology": (
        "a bolt, of its manager",
        Header(kind=PLAN),
        [Plan(build=1, packing=OTHERS_PACKING)],
    ),
    "a plan without one of the components": (
        "a bolt, of its manager",
        Header(kind=PLAN),
        [Plan(build=1, packing=packing_to_message(packing_to_bytes(PackingPlan("round-robin", ()))))],
    ),
    "a plan of another topology, of a master": (
        "a manager, of its master",
        Header(kind=PLAN),
        [Plan(epoch=2, build=1, shape=shape_to_bytes(DEFINITION.shape), packing=OTHERS_PACKING)],
    ),
    "rows of a task that it does not read": (
        "a bolt, of its manager",
        Header(kind=ROWS, source=99, rows=1, ids=ONE),
        TRACKED,
    ),
    "rows of a stream that there is not": (
        "a bolt, of its manager",
        Header(kind=ROWS, source=SPOUT, stream=9, rows=1, ids=ONE),
        TRACKED,
    ),
    "rows that are none": ("a bolt, of its manager", Header(kind=ROWS, source=SPOUT, rows=1), [b"\xc1"]),
    "more rows than there are": ("a bolt, of its manager", Header(kind=ROWS, source=SPOUT, rows=3), [b"\x91\x91\xa1a"]),
}


@pytest.mark.parametrize(("where", "header", "bodies"), SPECIFIC.values(), ids=SPECIFIC)
def test_what_ended_a_process_is_dropped_and_counted(where, header, bodies):
    end, said = ENDS[where](), Header()
    said.CopyFrom(header)
    before = end.malformed
    sender = header.sender
    end.hears(said, [b if isinstance(b, bytes) else b.SerializeToString() for b in bodies], knows=not sender)
    assert end.malformed == before + 1


def test_the_trees_of_rows_that_cannot_be_read_fail():
    """At once, so that their spout decides; the bolt goes on with the next rows."""
    bolt = Instance("passed")
    bolt.hears(Header(kind=ROWS, source=SPOUT, rows=1, ids=ONE), [b"\xc1", *TRACKED[1:]], knows=True)
    bolt.hears(Header(kind=ROWS, source=SPOUT, rows=1, ids=ONE), TRACKED, knows=True)
    acks = [message.frames for message in bolt.sent if message.header.kind == ACKS]
    assert [frames[2] for frames in acks] == [TRACKED[1], b""]
    assert [message.header.rows for message in bolt.sent if message.header.kind == ROWS] == [1]


class Said:
    """A connection to a master that has said this."""

    def __init__(self, *messages):
        self.messages = messages

    def receive(self, limit):
        return self.messages


@pytest.fixture
def caller(tmp_path):
    with open_state(f"file://{tmp_path}") as state, MasterClient(state, "words", tmp_path) as client:
        yield client
        client._link = None


@given(st.lists(st.lists(st.binary(max_size=12), min_size=1, max_size=3), max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_caller_waits_on_for_a_message_that_is_one(caller, said):
    caller._link = Said(*said, [Header(kind=ANSWER, protocol=PROTOCOL).SerializeToString()], [b"\xff", b"\xff"])
    assert caller.receive() is None


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff", b"[" * 9000])
def test_a_caller_says_that_it_cannot_read_an_answer(caller, body):
    answer = Answer(ok=True, body=body)
    caller._link = Said([Header(kind=ANSWER, protocol=PROTOCOL).SerializeToString(), answer.SerializeToString()])
    with pytest.raises(ArdeaError, match="what the master of words answers cannot be read"):
        caller.receive()


# --- numbers ----------------------------------------------------------------------------------------------------

values = st.sampled_from([0, 1, -1, 1 << 62, (1 << 63) - 1]) | st.floats()
names = st.sampled_from([*SERIES])
labels = st.lists(st.sampled_from(["", "a", "\x1b[2J"]), max_size=2)


def alike(count, value):
    """So many of one value: as many as a histogram has buckets, or one less or more."""
    return value.map(lambda each: [each] * count)


whole = st.integers(-(1 << 63), (1 << 63) - 1)
histograms = st.builds(HistogramValue, alike(24, whole) | alike(25, whole), st.floats())


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.builds(
            Snapshot,
            st.builds(
                Identity, st.just("t"), st.integers(0, 2), st.just("p"), st.just("c"), st.just(1), st.integers(0, 9)
            ),
            st.lists(st.tuples(names, labels, values), max_size=4),
            st.lists(st.tuples(names, labels, values), max_size=4),
            st.lists(st.tuples(names, labels, histograms), max_size=2),
        ).map(msgspec.msgpack.encode)
        | st.binary(max_size=40),
        max_size=5,
    )
)
def test_no_snapshot_ends_a_metrics_manager(snapshots):
    manager = MetricsManager(Identity("t", 1, "metrics-manager"))
    for now, snapshot in enumerate(snapshots):
        manager.accept(snapshot, now)
    manager.samples()
    overview = Overview()
    overview.accept(manager.summary(1), 0.0)
    msgspec.json.encode([overview.processes(), by_component(overview.processes())])


tuples = alike(1, values) | alike(25, values) | alike(26, values)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.builds(
            TaskSummary,
            st.just("p"),
            st.just("c"),
            st.integers(0, 2),
            st.integers(0, 9),
            st.dictionaries(names, tuples, max_size=3),
            st.dictionaries(names, tuples, max_size=3),
            st.dictionaries(names, values, max_size=3),
        ),
        max_size=5,
    )
)
def test_no_summary_ends_a_master(reports):
    """Which stores what it was told, and answers with it."""
    overview = Overview()
    for report in reports:
        with contextlib.suppress(msgspec.MsgspecError):
            overview.accept(msgspec.msgpack.encode(Summary(1, 1, [report])), 0.0)
    msgspec.json.encode([overview.processes(), by_component(overview.processes())])
