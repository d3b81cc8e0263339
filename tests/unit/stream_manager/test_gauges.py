"""What a stream manager exports of its state."""

from __future__ import annotations

from ardea import Topology
from ardea.metrics import Identity, Registry
from ardea.plan.shape import shape_of, shape_to_bytes
from ardea.plan.wire import packing_to_bytes, packing_to_message
from ardea.protocol.ids import column
from ardea.protocol.incarnations import incarnation
from ardea.protocol.lane import Lane
from ardea.protocol.wire_pb2 import CREDITS, MARKER, Address, Header, Plan
from ardea.scheduler.packing import packing_for
from ardea.stream_manager.gauges import Gauges
from ardea.stream_manager.known_plan import KnownPlan
from ardea.stream_manager.manager import StreamManager
from ardea.testing import CollectBolt, RowsSpout
from tests.unit.stream_manager.mesh import Mesh


class Pair(Topology):
    rows = RowsSpout.of(["n"], []).spec(par=2)
    keep = CollectBolt.spec(inputs=[rows], par=2)
    config = {"topology.message.timeout.secs": 30}


def planned(manager, epoch, containers, **config):
    logical = Pair.plan({"topology.stmgrs": containers, **config})
    packing = packing_for(logical.config).pack(logical)
    shape = shape_to_bytes(shape_of(logical))
    addresses = [Address(container=n, host="h", incarnation=incarnation(1, 1)) for n in range(1, containers + 1)]
    packed = packing_to_message(packing_to_bytes(packing))
    manager.planned(KnownPlan.of(Plan(epoch=epoch, build=1, shape=shape, packing=packed, addresses=addresses)))


def acks_wait(manager):
    """For the other manager, without room, since 0.0."""
    link = manager.members.peers[2]
    while link.control_room:
        link.send(Lane.CONTROL, Header(kind=CREDITS), [b"x" * 65536], 65536)
    ids = [column(b"".join(n.to_bytes(8, "little") for n in numbers)) for numbers in ([1, 2], [5, 6], [3], [], [])]
    manager.members.outboxes[link].acks(1, [each.tobytes() for each in ids], 0.0)
    return manager.members.outboxes[link]


def test_acks_that_could_not_leave_in_time_are_counted_also_of_a_peer_that_is_gone():
    manager = StreamManager(1, incarnation(1, 1), "pair-1", lambda *_: None, lambda *_: None)
    registry = Registry(Identity("pair-1", 1, "stream-manager"))
    gauges = Gauges(registry)
    dropped = registry.counter("ardea_stmgr_acks_dropped_total")
    planned(manager, 1, 2)
    outbox = acks_wait(manager)
    outbox.flush(29.0)
    gauges.read(manager, 29.0)
    assert dropped.value == 0
    outbox.flush(31.0)
    gauges.read(manager, 31.0)
    assert dropped.value == 3
    planned(manager, 2, 1)
    assert not manager.members.peers
    gauges.read(manager, 32.0)
    assert dropped.value == 3


def test_dropped_tuples_are_rows_and_no_markers():
    """All are for a life of the task that is over when they arrive."""
    mesh = Mesh(2)
    mesh.begins(*mesh.plan.tasks)
    spout, reader = mesh.tasks(1, "rows")[0], mesh.tasks(2, "keep")[0]
    for rows in (5, 7):
        mesh.emits(spout, reader, rows)
    mesh.from_task(spout, Header(kind=MARKER, source=spout, round=7, epoch=1), lane=Lane.DATA)
    mesh.begins(reader, life=2)
    registry = Registry(Identity("many-1", 2, "stream-manager"))
    Gauges(registry).read(mesh.managers[2], mesh.now)
    assert registry.counter("ardea_stmgr_tuples_dropped_total", reason="stale").value == 5 + 7


def test_what_was_counted_of_a_task_that_left_stays_and_goes_on_when_it_is_back():
    """Who sums up the lives of processes takes the highest count of each: one that fell would stand still there."""
    manager = StreamManager(1, incarnation(1, 1), "pair-1", lambda *_: None, lambda *_: None)
    registry = Registry(Identity("pair-1", 1, "stream-manager"))
    gauges = Gauges(registry)
    seconds = registry.counter("ardea_stmgr_backpressure_seconds_total", initiator="keep-1")
    events = registry.counter("ardea_stmgr_backpressure_events_total")
    sent = registry.counter("ardea_stmgr_bytes_total", direction="out", peer="keep-1")
    lost, told = registry.counter("ardea_ack_tree_lost_total"), []
    for epoch, (containers, grown) in enumerate([(1, 9), (2, 1), (1, 2), (1, 1)], 1):
        planned(manager, epoch, containers)
        for task, link in manager.members.instances.items():
            consumer = manager.inputs.consumers[task]
            consumer.pauses, consumer.paused_seconds = consumer.pauses + grown, consumer.paused_seconds + grown
            link.statistics.sent_bytes += grown
        for ledger in manager.verdicts.ledgers().values():
            ledger.statistics().lost += grown
        gauges.read(manager, float(epoch))
        told.append((seconds.value, events.value, sent.value, lost.value))
    assert told == [(9, 36, 9, 18), (9, 38, 9, 19), (11, 46, 11, 23), (12, 50, 12, 25)]


def test_where_nothing_times_out_acks_wait_for_ever_and_by_the_next_plan_as_long_as_trees():
    manager = StreamManager(1, incarnation(1, 1), "pair-1", lambda *_: None, lambda *_: None)
    planned(manager, 1, 2, **{"topology.enable.message.timeouts": False})
    outbox = acks_wait(manager)
    outbox.flush(1e6)
    assert outbox.waiting
    planned(manager, 2, 2, **{"topology.message.timeout.secs": 1e6})
    outbox.flush(1e6)
    assert outbox.waiting
    outbox.flush(1e6 + 1)
    assert (outbox.waiting, outbox.dropped) == (False, 3)
