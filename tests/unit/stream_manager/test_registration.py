"""A manager's link to the master, which two containers of one number may share for a moment."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.errors import ExitCode, OtherVersion, ProtocolError, Replaced
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol import incarnations
from ardea.protocol.plan_changes import difference
from ardea.protocol.wire_pb2 import HELLO, LEAVING, PLAN, REFUSED, REGISTER, Header, Hello, Plan, Refusal
from ardea.scheduler.packing import packing_for
from ardea.state.records import MasterLocation
from ardea.stream_manager.applicant import Applicant
from ardea.stream_manager.registration import Registrar
from ardea.testing import CollectBolt, RowsSpout
from ardea.versions import PROTOCOL, UNNUMBERED

TERM = 7
ME = incarnations.applicant("mine", 3)


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec()
    count = CollectBolt.spec(inputs=[words])


class Master:
    """A connection, and who is at its other end."""

    address = "tcp://host:1"

    def __init__(self):
        self.heard, self.mail = [], []

    def send(self, frames):
        self.heard.append((Header.FromString(frames[0]), frames[1:]))
        return True

    def receive(self, _limit):
        mail, self.mail = self.mail, []
        return mail

    def close(self):
        pass

    def says(self, kind, receiver, body, sequence=0):
        header = Header(kind=kind, sender=TERM, receiver=receiver, sequence=sequence)
        self.mail.append([header.SerializeToString(), body.SerializeToString()])

    @property
    def kinds(self):
        return [header.kind for header, _ in self.heard]


@pytest.fixture
def master():
    return Master()


@pytest.fixture
def applicant():
    plan = Words.plan({})
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    definition = Definition(topology="words", state="", location="", config={}, shape=shape_of(plan), packing=packing)
    return Applicant(definition, 1, "mine", 3, ("here", 11, 12))


@pytest.fixture
def registrar(master, applicant):
    location = MasterLocation(host="host", port=1, term=TERM, pid=1)
    registrar = Registrar(lambda: location, lambda _: master, applicant)
    registrar.tick(0.0)
    return registrar


def test_it_says_whose_it_is_and_registers_when_it_is_answered(registrar, master):
    [(header, [body])] = master.heard[:1]
    hello = Hello.FromString(body)
    assert (header.sender, hello.holder, hello.container) == (ME, "mine", 1)
    master.says(HELLO, ME, Hello(protocol=PROTOCOL))
    registrar.receive(0.1)
    registrar.tick(0.2)
    assert REGISTER in master.kinds


def test_what_is_said_to_another_of_its_number_is_not_for_it(registrar, master):
    """Neither an answer nor a refusal."""
    master.says(HELLO, incarnations.applicant("another", 3), Hello(protocol=PROTOCOL))
    master.says(REFUSED, incarnations.applicant("another", 3), Refusal(code="REPLACED", message="replaced"))
    assert registrar.receive(0.1) == []
    registrar.tick(0.2)
    assert REGISTER not in master.kinds


def test_a_refusal_ends_it(registrar, master):
    master.says(REFUSED, ME, Refusal(code="REPLACED", message="another has its place"))
    with pytest.raises(Replaced, match="REPLACED: another has its place"):
        registrar.receive(0.1)


def test_any_other_refusal_is_tried_again(registrar, master):
    master.says(REFUSED, ME, Refusal(code="WRONG_TOPOLOGY", message="not mine"))
    with pytest.raises(ProtocolError, match="WRONG_TOPOLOGY: not mine") as caught:
        registrar.receive(0.1)
    assert caught.value.exit_code == ExitCode.TEMPORARY


def test_it_says_that_it_leaves_and_which_admission_it_had(registrar, master, applicant):
    applicant.admission = 4
    registrar.leave()
    hello = Hello.FromString(master.heard[-1][1][0])
    assert (hello.leaving, hello.admission) == (True, 4)


@pytest.mark.parametrize("stays", [False, True])
def test_a_master_that_is_found_later_is_asked_by_a_container_that_still_leaves(registrar, master, stays):
    registrar.depart()
    if stays:
        registrar.stay()
    master.says(HELLO, ME, Hello(protocol=PROTOCOL))
    registrar.receive(0.1)
    registrar.tick(0.2)
    assert (LEAVING in master.kinds) is not stays
    assert stays or master.kinds.index(LEAVING) > master.kinds.index(REGISTER)


@pytest.mark.parametrize("number", [0, UNNUMBERED, PROTOCOL + 1])
def test_a_master_of_another_protocol_is_left_for_good(registrar, master, number):
    master.says(HELLO, ME, Hello(protocol=number))
    with pytest.raises(OtherVersion, match=f"master speaks protocol {number or UNNUMBERED}, .* protocol {PROTOCOL}"):
        registrar.receive(0.1)


def test_a_master_that_refuses_the_version_is_left_for_good(registrar, master):
    master.says(REFUSED, ME, Refusal(code="OTHER_VERSION", message="why", definite=True))
    with pytest.raises(OtherVersion, match="why") as refusal:
        registrar.receive(0.1)
    assert refusal.value.exit_code is ExitCode.PERMANENT


# --- plans --------------------------------------------------------------------------------------------------------


def plans(*ports):
    """A plan for each port at which container 1 listens."""
    logical = Words.plan({})
    packing = packing_to_message(packing_to_bytes(packing_for(logical.config).pack(logical)))
    made = [
        Plan(version=version, epoch=1, build=1, shape=shape_to_bytes(shape_of(logical)), packing=packing)
        for version in range(1, len(ports) + 1)
    ]
    for plan, port in zip(made, ports, strict=True):
        plan.addresses.add(container=1, host="h", data_port=port, control_port=2)
    return made


def test_a_difference_makes_the_plan_that_it_has_the_next_one(registrar, master):
    """Of which nothing is read again that has not changed."""
    first, second = plans(1, 3)
    master.says(HELLO, ME, Hello(protocol=PROTOCOL))
    master.says(PLAN, ME, first, 1)
    master.says(PLAN, ME, difference(first, second), 2)
    was, now = registrar.receive(0.1)
    assert now.plan is was.plan
    second.master = master.address
    assert now.message == second


def test_who_does_not_have_the_plan_that_a_difference_changes_registers_again(registrar, master):
    first, second, third = plans(1, 3, 4)
    master.says(HELLO, ME, Hello(protocol=PROTOCOL))
    master.says(PLAN, ME, difference(first, second), 1)
    assert registrar.receive(0.1) == []
    registrar.tick(0.2)
    assert master.kinds.count(REGISTER) == 2
    master.says(PLAN, ME, first, 2)
    master.says(PLAN, ME, difference(second, third), 3)
    assert len(registrar.receive(0.3)) == 1
    assert master.kinds.count(REGISTER) == 3


def test_a_difference_that_cannot_be_read_is_dropped_and_counted(registrar, master):
    (first,) = plans(1)
    master.says(HELLO, ME, Hello(protocol=PROTOCOL))
    master.says(PLAN, ME, first, 1)
    master.says(PLAN, ME, Plan(base=1, epoch=1, packing=b"{"), 2)
    assert len(registrar.receive(0.1)) == 1
    assert registrar.malformed == 1
