"""Who may take a container's place, and that everybody is told where it listens."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.incarnations import admission_of, applicant
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.plan_changes import whole
from ardea.protocol.wire_pb2 import (
    HELLO,
    PLAN,
    REFUSED,
    REGISTER,
    REPORT,
    Address,
    Header,
    Hello,
    Plan,
    Refusal,
    Registration,
    SnapshotReport,
    StateFile,
    TaskReport,
)
from ardea.scheduler.packing import packing_for
from ardea.state.records import RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.testing.memory_store import MemoryStore
from ardea.topology_master.admissions import SILENCE
from ardea.topology_master.master import Master
from ardea.versions import PROTOCOL, UNNUMBERED
from tests.simulation.snapshots.counted import EffectivelyOnce


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=2)
    count = CollectBolt.spec(inputs=[words], par=2)


class Meeting:
    """A master, and what it sends to managers; two containers."""

    def __init__(self, topology=Words):
        plan = topology.plan({"topology.stmgrs": 2})
        packing = packing_for(plan.config).pack(plan)
        self.digest, self.links, self.plans, self.refused, self.now = shape_of(plan).digest, {}, {}, [], 0.0
        self.said, self.whole = {}, {}
        definition = Definition(
            topology="words", state="", location="", config={}, shape=shape_of(plan), packing=packing_to_bytes(packing)
        )
        self.definition, self.store = definition, MemoryStore(RunState.RUNNING, definition)
        self.begins(1)

    def begins(self, term):
        """A master acts."""
        found = self.store.held
        self.master = Master(self.definition, None, term, self.store, self._sent, found=found, now=self.now)

    def _sent(self, link, _lane, message):
        header, *frames = message
        if Header.FromString(header).kind == PLAN:
            plan = Plan.FromString(frames[0])
            self.said.setdefault(link.key, []).append(plan)
            plan = self.whole[link] = whole(self.whole[link], plan) if plan.base else plan
            ports = {a.container: a.data_port for a in plan.addresses}
            self.plans.setdefault(link.key, []).append(ports)
        elif Header.FromString(header).kind == REFUSED:
            self.refused.append((Header.FromString(header).receiver, Refusal.FromString(frames[0]).code))

    def registers(self, container, holder, port, **more):
        """A manager's first life under that holder says hello, then where it listens."""
        self.says_hello(container, holder, **more)
        self.registers_again(container, holder, port)

    def registers_again(self, container, holder, port):
        """Without another hello."""
        address = Address(container=container, host="h", data_port=port)
        body = Registration(**self._common(container, holder), address=address)
        self.links[holder].send(Lane.CONTROL, Header(kind=REGISTER), [body.SerializeToString()])

    def says_hello(self, container, holder, life=1, **more):
        """Only that."""
        common = self._common(container, holder)

        def arrived(_link, _lane, message):
            header, *frames = message
            self.master.received(container, Header.FromString(header), frames, self.now)

        link = self.links[holder] = Link("master", "master", applicant(holder, life), arrived)
        link.signal(Header(kind=HELLO), [Hello(**{"protocol": PROTOCOL, **common, **more}).SerializeToString()])
        link.meet(self.master.term)

    def _common(self, container, holder):
        return {"topology": "words", "digest": self.digest, "container": container, "holder": holder}

    def holds(self, container):
        return self.store.holders()[container]


def beside_the_other():
    """Container 2 is there: nobody is admitted for the first time before all are."""
    meeting = Meeting()
    meeting.registers(2, "z", 99)
    return meeting


@pytest.mark.parametrize("number", [0, UNNUMBERED, PROTOCOL + 1])
def test_a_manager_of_another_protocol_gets_no_place(number):
    meeting = Meeting()
    meeting.says_hello(1, "a", protocol=number)
    assert meeting.refused == [(applicant("a", 1), "OTHER_VERSION")]
    assert meeting.master.admissions.containers == {}
    assert meeting.store.holders() == {}


def test_the_plan_goes_to_all_when_the_last_has_registered():
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    assert meeting.plans == {}
    meeting.registers(2, "b", 12)
    assert meeting.plans == {1: [{1: 11, 2: 12}], 2: [{1: 11, 2: 12}]}


def test_a_container_that_was_replaced_is_dialled_where_it_is_now():
    """Another supervisor, other ports: who stayed hears of them, not only the newcomer."""
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    meeting.now = SILENCE
    meeting.registers(2, "c", 22)
    assert meeting.plans[1][-1] == meeting.plans[2][-1] == {1: 11, 2: 22}


def test_nobody_gets_a_plan_ahead_of_its_admission():
    """Two containers are replaced at once: the second has said hello when the first registers."""
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    meeting.now = SILENCE
    meeting.says_hello(2, "d")
    meeting.registers(1, "c", 21)
    assert meeting.plans == {1: [{1: 11, 2: 12}, {1: 21, 2: 12}], 2: [{1: 11, 2: 12}]}


def test_a_place_is_free_when_its_holder_is_silent():
    """Whatever it says counts, up to the last moment."""
    meeting = beside_the_other()
    meeting.registers(1, "a", 11)
    meeting.now = 2.0
    meeting.links["a"].heartbeat()
    meeting.now = 2.0 + 0.9 * SILENCE
    meeting.registers(1, "b", 12)
    assert meeting.holds(1) == "a"
    meeting.now = 2.0 + SILENCE
    meeting.registers(1, "b", 12)
    assert meeting.holds(1) == "b"
    assert admission_of(meeting.master.admissions.containers[1].address.incarnation) == 2


def test_a_place_is_free_at_once_when_its_holder_leaves():
    meeting = beside_the_other()
    meeting.registers(1, "a", 11)
    meeting.registers(1, "a", 11, admission=1, leaving=True)
    meeting.registers(1, "b", 12)
    assert meeting.holds(1) == "b"


def test_who_was_replaced_never_comes_back():
    """Not when the next one is silent, and not under another master."""
    meeting = beside_the_other()
    meeting.registers(1, "a", 11)
    meeting.now = SILENCE
    meeting.registers(1, "b", 12)
    for term, now in ((1, 6.0), (1, 60.0), (2, 61.0), (2, 600.0)):
        meeting.now = now
        if term != meeting.master.term:
            meeting.begins(term)
        meeting.registers(1, "a", 11, admission=1)
    assert meeting.refused == [(applicant("a", 1), "REPLACED")] * 4
    assert meeting.holds(1) == "b"


def test_a_new_master_gives_who_holds_a_place_time_to_say_so():
    meeting = beside_the_other()
    meeting.registers(1, "a", 11)
    meeting.now = 100.0
    meeting.begins(2)
    meeting.registers(1, "b", 12)
    assert meeting.holds(1) == "a"


def test_what_a_replaced_container_says_is_not_taken_for_the_next_ones():
    """Both are manager 1 in its first life; the numbers of their messages would fit."""
    meeting = beside_the_other()
    meeting.registers(1, "a", 11)
    meeting.now = SILENCE
    meeting.registers(1, "b", 12)
    taken = meeting.master.admissions.containers[1].link.statistics
    before = taken.received
    for _ in range(4):
        meeting.links["a"].send(Lane.CONTROL, Header(kind=REGISTER), [Registration(holder="a").SerializeToString()])
    assert (taken.received, taken.stale) == (before, 4)
    assert meeting.holds(1) == "b"


class Many(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=100)
    count = CollectBolt.spec(inputs=[words], par=150)


def test_the_master_looks_at_many_tasks_less_often_than_they_report():
    """At 250 once in 4 ms, whatever comes meanwhile; it is not forgotten."""
    meeting = Meeting(Many)
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    places = meeting.master.admissions.plan.tasks_in(1)
    meeting.master.tick(10.0)
    for version, now, due in ((1, 10.001, 10.004), (2, 10.003, 10.004), (3, 10.0041, 11.0)):
        report = TaskReport(task=places[0].task, life=1, version=version)
        meeting.links["a"].send(Lane.CONTROL, Header(kind=REPORT), [report.SerializeToString()])
        assert meeting.master.tick(now) == pytest.approx(due)


def test_who_has_the_plan_is_told_only_what_has_changed():
    """The newcomer hears of all."""
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    meeting.now = SILENCE
    meeting.registers(2, "c", 22)
    said = {
        number: [(bool(plan.packing), len(plan.addresses), plan.base) for plan in plans]
        for number, plans in meeting.said.items()
    }
    assert said == {1: [(True, 2, 0), (False, 1, 1)], 2: [(True, 2, 0), (True, 2, 0)]}


def test_who_registers_again_is_told_the_whole_plan_again():
    """It may have none that a difference could change."""
    meeting = Meeting()
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    meeting.registers_again(1, "a", 11)
    assert [p.base for p in meeting.said[1]] == [0, 0]
    assert bool(meeting.said[1][-1].packing)


def test_a_manager_that_has_risen_is_noticed_before_its_tasks_are_heard():
    """It need not have registered for that: rows have died with its former life."""
    meeting = Meeting(EffectivelyOnce(Words))
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    tasks = {
        place.task: "a" if place.container == 1 else "b" for place in meeting.master.admissions.plan.tasks.values()
    }

    def report(only="ab", **said):
        for task, holder in tasks.items():
            if holder in only:
                body = TaskReport(task=task, life=1, epoch=1, snapshots=SnapshotReport(**said)).SerializeToString()
                meeting.links[holder].send(Lane.CONTROL, Header(kind=REPORT), [body])
        meeting.now += 1.0
        meeting.master.tick(meeting.now)

    report()
    report(timeline=1)
    number = meeting.master.coordination.snapshots.taking.number
    report("a", timeline=1, number=number, files=[StateFile(name="f")])
    meeting.says_hello(2, "b", life=2)
    report("b", timeline=1, number=number, files=[StateFile(name="f")])
    assert (meeting.store.files, [record.timeline for record in meeting.store.records]) == ({}, [1])
    meeting.registers_again(2, "b", 12)
    report("b")
    assert [record.timeline for record in meeting.store.records] == [1, 2]
