"""What a topology master exports of its containers."""

from __future__ import annotations

import msgspec

from ardea.metrics import Identity, Snapshot
from ardea.plan.definition import Definition
from ardea.plan.shape import shape_of
from ardea.plan.wire import packing_to_bytes
from ardea.scheduler.packing import packing_for
from ardea.topology_master.gauges import Gauges
from ardea.topology_master.updates import plan_of
from tests.unit.topology_master.test_addresses import Meeting, Words


def ages(gauges, meeting):
    """Seconds since each peer was heard."""
    gauges.read(meeting.master, 0, meeting.now)
    snapshot = msgspec.msgpack.decode(gauges.snapshot(), type=Snapshot)
    return {labels[0]: value for name, labels, value in snapshot.gauges if name == "ardea_tm_heartbeat_age_seconds"}


def test_a_container_that_an_update_has_removed_has_no_age():
    meeting, gauges = Meeting(), Gauges(Identity("words", 0, "topology-master"))
    meeting.registers(1, "a", 11)
    meeting.registers(2, "b", 12)
    meeting.now = 2.0
    assert ages(gauges, meeting) == {"manager-1": 2.0, "manager-2": 2.0}
    plan = Words.plan({"topology.stmgrs": 1})
    packing = packing_to_bytes(packing_for(plan.config).pack(plan))
    smaller = Definition(topology="words", state="", location="", config={}, shape=shape_of(plan), packing=packing)
    meeting.master.admissions.replanned(smaller, plan_of(smaller))
    meeting.now = 60.0
    assert ages(gauges, meeting) == {"manager-1": 60.0}


def test_a_container_is_heard_from_its_hello_on():
    meeting, gauges = Meeting(), Gauges(Identity("words", 0, "topology-master"))
    meeting.now = 1e6
    meeting.says_hello(1, "a")
    meeting.now += 2.0
    assert ages(gauges, meeting) == {"manager-1": 2.0}
