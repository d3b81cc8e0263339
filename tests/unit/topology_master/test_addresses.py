"""Where a replaced container listens, everybody is told."""

from __future__ import annotations

from ardea import Topology
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.protocol.lane import Lane
from ardea.protocol.link import Link
from ardea.protocol.wire_pb2 import HELLO, PLAN, REGISTER, Address, Header, Hello, Plan, Registration
from ardea.state.records import RunState
from ardea.testing import CollectBolt, RowsSpout
from ardea.testing.world import MemoryStore
from scheduler.packing import packing_for
from topology_master.state import Master


class Words(Topology):
    words = RowsSpout.of(["word"], [["a"]]).spec(par=2)
    count = CollectBolt.spec(inputs=[words], par=2)


class Meeting:
    """A master, and what it sends to managers; two containers."""

    def __init__(self):
        plan = Words.plan({"topology.stmgrs": 2})
        packing = packing_for(plan.config).pack(plan)
        self.digest, self.links, self.plans = shape_of(plan).digest, {}, {}
        definition = Definition(
            topology="words", state="", location="", config={}, shape=shape_of(plan), packing=packing_to_bytes(packing)
        )
        store = MemoryStore(RunState.RUNNING, definition)
        self.master = Master(definition, None, 1, store, self._sent, found=store.held, now=0.0)

    def _sent(self, link, _lane, message):
        header, *frames = message
        if Header.FromString(header).kind == PLAN:
            ports = {a.container: a.data_port for a in Plan.FromString(frames[0]).addresses}
            self.plans.setdefault(link.key, []).append(ports)

    def registers(self, container, holder, port):
        """A manager's first life under that holder says hello, then where it listens."""
        common = {"topology": "words", "digest": self.digest, "container": container, "holder": holder}

        def arrived(_link, _lane, message):
            header, *frames = message
            self.master.received(container, Header.FromString(header), frames, 0.0)

        link = Link("master", "master", 1, arrived)
        link.signal(Header(kind=HELLO), [Hello(**common).SerializeToString()])
        link.meet(self.master.term)
        body = Registration(**common, address=Address(container=container, host="h", data_port=port))
        link.send(Lane.CONTROL, Header(kind=REGISTER), [body.SerializeToString()])


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
    meeting.registers(2, "c", 22)
    assert meeting.plans[1][-1] == meeting.plans[2][-1] == {1: 11, 2: 22}
