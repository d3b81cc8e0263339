"""What a quiet second costs a manager, in operations of the interpreter, among sixteen and among sixty-four."""

from __future__ import annotations

import sys
from collections import deque

from ardea import Grouping, Topology
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.incarnations import incarnation
from ardea.protocol.wire_pb2 import Address, Header, Plan
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.manager import StreamManager
from ardea.testing import CollectBolt, RowsSpout

MOST = 5.0
"""Times the operations, for four times the containers."""


def topology(containers):
    rows = RowsSpout.of(["n"], []).spec(par=containers, name="rows")
    keep = CollectBolt.spec(inputs={rows: Grouping.fields("n")}, par=3 * containers, name="keep")
    return type("Many", (Topology,), {"rows": rows, "keep": keep})


class Mesh:
    """Managers of one plan, and the messages between them; their tasks have not begun."""

    def __init__(self, containers):
        logical = topology(containers).plan({"topology.stmgrs": containers})
        packing = packing_for(logical.config).pack(logical)
        numbers = range(1, containers + 1)
        self.now, self.mail = 0.0, deque()
        self.managers = {
            n: StreamManager(n, incarnation(1, 1), "many-1", self.port(n), lambda _: None) for n in numbers
        }
        plan = Plan(epoch=1, build=1, shape=shape_to_bytes(shape_of(logical)), packing=packing_to_bytes(packing))
        plan.addresses.extend(Address(container=n, host="h", incarnation=incarnation(1, 1)) for n in numbers)
        for manager in self.managers.values():
            manager.planned(plan, packing)
        for _ in range(2):
            self.second()
        assert all(link.up for manager in self.managers.values() for link in manager.members.peers.values())

    def port(self, sender):
        def transmit(link, lane, message):
            if link.key in self.managers and self.managers[sender].members.peers.get(link.key) is link:
                self.mail.append((sender, link.key, lane, message))

        return transmit

    def second(self):
        self.now += 1.0
        for manager in self.managers.values():
            manager.tick(self.now)
        self.deliver()

    def deliver(self):
        while self.mail:
            sender, target, lane, (header, *frames) = self.mail.popleft()
            manager = self.managers[target]
            manager.received(manager.members.peers[sender], lane, Header.FromString(header), frames, self.now)
            manager.flush(self.now)

    def operations_of_a_second(self):
        """Of the first manager: its own heartbeats, and what comes from all others."""
        counted = 0

        def count(frame, event, argument):
            nonlocal counted
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            counted += event == "opcode"
            return count

        for manager in list(self.managers.values())[1:]:
            manager.tick(self.now + 1.0)
        self.now += 1.0
        self.mail = deque(each for each in self.mail if each[1] == 1)
        sys.settrace(count)
        try:
            self.managers[1].tick(self.now)
            coming = deque(each for each in self.mail if each[1] == 1)
            while coming:
                sender, _, lane, (header, *frames) = coming.popleft()
                link = self.managers[1].members.peers[sender]
                self.managers[1].received(link, lane, Header.FromString(header), frames, self.now)
                self.managers[1].flush(self.now)
        finally:
            sys.settrace(None)
        return counted


def test_a_quiet_second_grows_with_the_containers_and_no_faster():
    few, many = (Mesh(containers).operations_of_a_second() for containers in (16, 64))
    assert many / few <= MOST, (few, many)
