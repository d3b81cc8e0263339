"""Peers of another protocol, and topologies of another format, are refused; the message names both versions."""

from __future__ import annotations

import msgspec
import pytest

from ardea import Topology, versions
from ardea.errors import ExitCode, OtherVersion, Replaced, StateError, refused
from ardea.heron_instance.gateway import Gateway
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.flow import Window
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import HELLO, REFUSED, Header, Hello, Plan, Refusal
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.manager import StreamManager
from ardea.testing import CollectBolt, RowsSpout
from ardea.versions import FORMAT, PROTOCOL, UNNUMBERED, format_differs, protocol_differs

OTHERS = (0, UNNUMBERED, PROTOCOL + 1)
LIFE = 5
OURS = f"speaks protocol {PROTOCOL} (Ardea {versions.__version__})"


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


PLAN = Pair.plan({"topology.stmgrs": 2})
PACKING = packing_for(PLAN.config).pack(PLAN)


def theirs(number: int) -> str:
    return f"speaks protocol {number or UNNUMBERED},"


@pytest.fixture
def definition():
    def make(number=FORMAT):
        return Definition(
            topology="pair-1", state="", location="p", config={}, shape=shape_of(PLAN),
            packing=packing_to_bytes(PACKING), format=number,
        )  # fmt: skip

    return make


@pytest.fixture
def sent():
    """What the peer under test has sent, as (key of the link, header, body)."""
    return []


@pytest.fixture
def port(sent):
    def transmit(link, _lane, message):
        header = Header.FromString(message[0])
        assert header.receiver == link.peer  # by which a process finds the socket's peer
        sent.append((link.key, header, *message[1:]))

    return transmit


@pytest.fixture
def manager(port, definition):
    """That of container 1, which has the plan; task 1 is its own."""
    made = StreamManager(1, LIFE, "pair-1", port, lambda _report: None)
    plan = Plan(epoch=1, build=1, shape=shape_to_bytes(definition().shape))
    plan.packing = packing_to_message(definition().packing)
    plan.addresses.add(container=2, host="h", data_port=1, control_port=2)
    made.planned(KnownPlan.of(plan))
    return made


class Deaf:
    def deliver(self, header, frames, size):
        pass

    def planned(self, plan):
        pass

    def reborn(self):
        pass


@pytest.fixture
def gateway(port):
    hello = Hello(protocol=PROTOCOL, topology="pair-1", digest=PLAN.digest(), task=1, epoch=1, build=1)
    return Gateway(hello, LIFE, Window(1 << 20, 5.0), port, Deaf())


def refusals(sent) -> list[Refusal]:
    return [Refusal.FromString(frames[0]) for _, header, *frames in sent if header.kind == REFUSED]


@pytest.mark.parametrize("number", OTHERS)
def test_a_task_has_nothing_to_do_with_a_manager_of_another_protocol(gateway, number):
    hello = Hello(protocol=number, topology="pair-1", digest=PLAN.digest(), epoch=1, build=1)
    with pytest.raises(OtherVersion) as refusal:
        gateway.received(Lane.CONTROL, Header(kind=HELLO, sender=1, receiver=LIFE), [hello.SerializeToString()], 0.0)
    assert refusal.value.code == "OTHER_VERSION"
    assert theirs(number) in refusal.value.reason
    assert OURS in refusal.value.reason
    assert gateway.link.peer == 0


@pytest.mark.parametrize("number", OTHERS)
@pytest.mark.parametrize("peer", ["instances", "peers"])
def test_a_manager_refuses_tasks_and_managers_of_another_protocol(manager, sent, peer, number):
    key, link = next(iter(getattr(manager.members, peer).items()))
    task = {"task": key} if peer == "instances" else {"container": key}
    hello = Hello(protocol=number, topology="pair-1", digest=PLAN.digest(), epoch=1, build=1, **task)
    link.meet(2)  # its former life was of this version
    sent.clear()
    manager.received(link, Lane.CONTROL, Header(kind=HELLO, sender=3), [hello.SerializeToString()], 0.0)
    assert link.peer == 2
    (refusal,) = refusals(sent)
    assert (refusal.code, refusal.definite) == ("OTHER_VERSION", True)
    assert sent[0][:2] == (key, Header(kind=REFUSED, sender=LIFE, receiver=3))
    assert theirs(number) in refusal.message
    assert OURS in refusal.message


def test_who_speaks_the_same_protocol_is_met(manager, sent):
    for key, link in manager.members.peers.items():
        hello = Hello(protocol=PROTOCOL, topology="pair-1", digest=PLAN.digest(), epoch=1, build=1, container=key)
        manager.received(link, Lane.CONTROL, Header(kind=HELLO, sender=3), [hello.SerializeToString()], 0.0)
        assert link.peer == 3
    assert refusals(sent) == []


def test_a_manager_that_is_refused_for_its_version_ends_definitely(manager):
    (link,) = manager.members.peers.values()
    body = Refusal(code="OTHER_VERSION", message="one speaks 3, one 2", definite=True).SerializeToString()
    former = Header(kind=REFUSED, sender=3, receiver=manager.members.me - 1)
    manager.received(link, Lane.CONTROL, former, [body], 0.0)  # this container's former life was refused
    with pytest.raises(OtherVersion, match="manager 2 refuses this manager: one speaks 3, one 2") as refusal:
        manager.received(link, Lane.CONTROL, Header(kind=REFUSED, sender=3, receiver=manager.members.me), [body], 0.0)
    assert refusal.value.exit_code is ExitCode.PERMANENT


def test_a_manager_of_another_plan_is_waited_for(manager):
    """One of the two is about to get the other's."""
    (link,) = manager.members.peers.values()
    body = Refusal(code="WRONG_TOPOLOGY", message="another plan", definite=True).SerializeToString()
    manager.received(link, Lane.CONTROL, Header(kind=REFUSED, sender=3), [body], 0.0)


def test_no_task_ends_its_manager(manager):
    link = manager.members.instances[1]
    body = Refusal(code="OTHER_VERSION", message="one speaks 3, one 2", definite=True).SerializeToString()
    manager.received(link, Lane.CONTROL, Header(kind=REFUSED, sender=3, receiver=manager.members.me), [body], 0.0)


def test_what_a_refusal_means_to_who_is_refused():
    assert isinstance(refused("REPLACED", "why"), Replaced)
    assert isinstance(refused("OTHER_VERSION", "why"), OtherVersion)
    assert refused("WRONG_TOPOLOGY", "why").exit_code is ExitCode.TEMPORARY


def test_a_definition_of_another_format_can_be_read_and_not_run(definition, tmp_path):
    for number in (UNNUMBERED, FORMAT + 1):
        definition(number).write(tmp_path / "definition")
        assert Definition.read(tmp_path / "definition") == definition(number)
        with pytest.raises(OtherVersion) as refusal:
            Definition.to_run(tmp_path / "definition")
        assert refusal.value.exit_code is ExitCode.PERMANENT
        assert f"(format {number})" in refusal.value.message
        assert f"Ardea {versions.__version__} (format {FORMAT})" in refusal.value.message
    definition().write(tmp_path / "definition")
    assert Definition.to_run(tmp_path / "definition") == definition()


def test_a_definition_that_only_another_version_can_read_is_not_called_damaged(tmp_path):
    (tmp_path / "definition").write_bytes(msgspec.msgpack.encode({"topology": "pair-1", "format": 9, "shape": 1}))
    with pytest.raises(OtherVersion, match=r"pair-1 .*\(format 9\).*its definition cannot be read"):
        Definition.read(tmp_path / "definition")
    (tmp_path / "definition").write_bytes(msgspec.msgpack.encode({"topology": "pair-1", "format": FORMAT, "shape": 1}))
    with pytest.raises(StateError, match="cannot be read"):
        Definition.read(tmp_path / "definition")
    (tmp_path / "definition").write_bytes(b"torn")
    with pytest.raises(StateError, match="cannot be read"):
        Definition.read(tmp_path / "definition")


def test_what_is_alike_differs_in_nothing():
    assert protocol_differs("me", "you", PROTOCOL) == ""
    assert format_differs("pair-1", FORMAT) == ""
