"""What a manager's shell does with the orders of its master, and while it has none."""

from __future__ import annotations

import pytest

from ardea import Topology
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import (
    ACTIVATE,
    DEACTIVATE,
    EXIT,
    HELLO,
    HOLD,
    LEAVE,
    ORDER,
    PLAN,
    Address,
    Header,
    Hello,
    Order,
    Plan,
)
from ardea.scheduler.packing import packing_for
from ardea.state.records import MasterLocation
from ardea.stream_manager.shell import Shell
from ardea.testing import CollectBolt, RowsSpout
from ardea.versions import PROTOCOL


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keep = CollectBolt.spec(inputs=[rows])


class Outside:
    """A master that acts, and its end of the link."""

    final = False
    address = ""
    room, kept = True, None

    def __init__(self):
        logical = Pair.plan({})
        packing = packing_to_bytes(packing_for(logical.config).pack(logical))
        self.definition = definition = Definition(
            topology="pair-1", state="", location="p", config={}, shape=shape_of(logical), packing=packing
        )
        self.master = MasterLocation(host="h", port=1, term=1, pid=1)
        self.mail = []
        self.end = Link("manager", "manager", 7, lambda _link, _lane, message: self.mail.append(message))
        self.shell = Shell(self, definition, 2, "me", 1, ("h", 1, 2))

    def look(self):
        return self

    def dial(self, address):
        self.address = address
        return self

    def send(self, frames):
        header = Header.FromString(frames[0])
        if header.kind == HELLO and not self.end.up:
            self.end.meet(header.sender)
            self.end.signal(Header(kind=HELLO), [Hello(protocol=PROTOCOL).SerializeToString()])
        return True

    def receive(self, _limit):
        mail, self.mail = self.mail, []
        return mail

    def close(self):
        pass

    def remember(self, admission, plan):
        if self.room:
            self.kept = Plan.FromString(plan.SerializeToString())
        return self.room

    def reach(self, plan):
        pass

    def leave(self, others):
        pass

    def transmit(self, link, lane, message):
        pass

    def plan(self, epoch, *, elsewhere="h", active=False):
        """In which container 1 listens at that host."""
        plan = Plan(epoch=epoch, build=1, active=active, shape=shape_to_bytes(self.definition.shape))
        plan.packing = packing_to_message(self.definition.packing)
        plan.addresses.append(Address(container=1, host=elsewhere, data_port=1, control_port=2))
        return plan

    def plans(self, now, plan):
        body = plan.SerializeToString()
        self.end.send(Lane.CONTROL, Header(kind=PLAN), [body], len(body))
        self.shell.listen(now)

    def orders(self, now, **order):
        body = Order(**order).SerializeToString()
        self.end.send(Lane.CONTROL, Header(kind=ORDER), [body], len(body))
        self.shell.listen(now)


@pytest.fixture
def outside():
    made = Outside()
    made.shell.tick(1.0)
    made.shell.listen(1.0)
    return made


def test_it_may_leave_when_its_master_says_so_of_its_container_and_it_has_asked(outside):
    shell = outside.shell
    outside.orders(1.1, kind=LEAVE, containers=[2])
    assert not shell.may_leave
    shell.depart()
    outside.orders(1.2, kind=LEAVE, containers=[1, 3])
    assert not shell.may_leave
    outside.orders(1.3, kind=LEAVE, containers=[2, 3])
    assert shell.may_leave


def test_one_that_stays_after_all_asks_and_waits_anew_when_it_leaves(outside):
    shell = outside.shell
    shell.depart()
    outside.orders(1.1, kind=LEAVE, containers=[2])
    shell.stay()
    outside.orders(1.2, kind=LEAVE, containers=[2])
    assert (shell.departs, shell.may_leave) == (False, False)
    shell.depart()
    assert (shell.departs, shell.may_leave) == (True, False)


def test_where_no_master_answers_it_need_not_wait():
    outside = Outside()
    outside.master = None
    outside.shell.tick(1.0)
    outside.shell.depart()
    for now in (1.0, 5.9):
        outside.shell.tick(now)
        assert not outside.shell.may_leave
    outside.shell.tick(6.0)
    assert outside.shell.may_leave
    outside.shell.stay()
    assert not outside.shell.may_leave


def test_a_new_master_has_the_time_to_answer(outside):
    """The former one may have been on the same node, which is drained."""
    shell = outside.shell
    shell.tick(9.0)
    outside.orders(9.0, kind=ACTIVATE, term=1)
    shell.depart()
    outside.master = MasterLocation(host="h", port=1, term=2, pid=2)
    for now in (10.0, 13.9):
        shell.tick(now)
        assert (shell.registrar.alone, shell.may_leave) == (True, False)
    shell.tick(14.0)
    assert shell.may_leave


def test_without_a_plan_it_is_over_when_it_is_told_to_end(outside):
    outside.orders(1.1, kind=EXIT, term=1)
    assert outside.shell.over


def test_where_no_master_is_the_final_state_is_the_end():
    outside = Outside()
    outside.master, outside.final = None, True
    outside.shell.tick(1.0)
    assert outside.shell.over


def test_a_plan_that_another_version_has_left_is_not_gone_on_with(outside):
    """Its packing was not compressed once: the master tells this life what it needs."""
    left = outside.plan(1)
    left.packing = outside.definition.packing
    outside.shell.recall(3, left)
    assert outside.shell.manager is None
    outside.shell.recall(3, outside.plan(1))
    assert outside.shell.manager.hellos.epoch == 1


def test_on_a_full_disk_it_works_by_new_addresses_and_keeps_them_when_there_is_room(outside):
    """A container that registers anew has another address, and no task moves: the plan that is kept is good enough."""
    shell = outside.shell
    outside.plans(1.1, outside.plan(1))
    outside.room = False
    outside.plans(1.2, outside.plan(1, elsewhere="there"))
    assert shell.manager.members.addresses[1].host == "there"
    shell.tick(3.0)
    assert outside.kept.addresses[0].host == "h"
    outside.room = True
    shell.tick(3.9)
    assert outside.kept.addresses[0].host == "h", "it is tried each second"
    shell.tick(4.0)
    assert outside.kept.addresses[0].host == "there"


def test_on_a_full_disk_another_plan_waits_for_room(outside):
    """A next life that worked by the former one would not know what the instances do."""
    shell = outside.shell
    outside.room = False
    outside.plans(1.1, outside.plan(1))
    assert shell.manager is None
    outside.room = True
    shell.tick(2.1)
    assert shell.manager.hellos.epoch == 1
    outside.room = False
    outside.plans(3.0, outside.plan(2))
    shell.tick(4.0)
    assert shell.manager.hellos.epoch == 1
    outside.room = True
    shell.tick(5.0)
    assert (shell.manager.hellos.epoch, outside.kept.epoch) == (2, 2)


def test_on_a_full_disk_an_order_is_kept_when_there_is_room(outside):
    """A next life that begins before there is a master would emit although the topology is paused."""
    shell = outside.shell
    outside.plans(1.1, outside.plan(1, active=True))
    outside.kept, outside.room = None, False
    outside.orders(1.2, kind=DEACTIVATE, term=1)
    assert not shell.manager.hellos.plan.active
    shell.tick(2.1)
    outside.room = True
    assert outside.kept is None
    shell.tick(2.2)
    assert (outside.kept.epoch, outside.kept.active) == (1, False)
    outside.room = False
    outside.orders(3.0, kind=ACTIVATE, term=1)
    outside.orders(3.1, kind=DEACTIVATE, term=1)
    outside.room = True
    shell.tick(4.1)
    assert not outside.kept.active, "the newest order holds"


def test_orders_hold_although_the_first_plan_waits_for_room(outside):
    """The master says them once; of each kind the last holds."""
    shell = outside.shell
    outside.room = False
    outside.plans(1.1, outside.plan(1, active=True))
    for kind in (DEACTIVATE, ACTIVATE, HOLD, DEACTIVATE):
        outside.orders(1.2, kind=kind, term=1)
    outside.room = True
    shell.tick(2.3)
    assert (shell.manager.hellos.plan.active, outside.kept.active) == (False, False)
    assert list(shell.manager.hellos.orders) == [HOLD, DEACTIVATE]


@pytest.mark.parametrize("before", [True, False])
def test_an_order_holds_for_a_plan_that_waits_for_room(outside, before):
    shell = outside.shell
    outside.plans(1.1, outside.plan(1, active=before))
    outside.room = False
    outside.plans(1.2, outside.plan(2, active=True))
    outside.orders(1.3, kind=DEACTIVATE, term=1)
    outside.room = True
    shell.tick(2.2)
    assert (shell.manager.hellos.epoch, shell.manager.hellos.plan.active, outside.kept.active) == (2, False, False)
