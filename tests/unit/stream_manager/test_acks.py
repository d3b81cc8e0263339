"""What waits for the control lane: folded right, bounded, and dropped only when it is of no use."""

import math
from collections import defaultdict

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea.protocol.ids import column
from ardea.protocol.lane import Lane
from ardea.protocol.link import CONTROL_ROOM, Link
from ardea.protocol.wire_pb2 import ACKS, ACTIVATE, CREDITS, DEACTIVATE, HEARTBEAT, ORDER, PAUSE, Header, Order
from ardea.stream_manager import acks
from ardea.stream_manager.acks import ENTRIES_A_MESSAGE, ControlOutbox, PendingAcks
from ardea.stream_manager.hellos import pass_on
from tests.sizes import share

TIMEOUT = 30.0
SPOUTS = (3, 4)
OPEN_ROOTS = 6

entries = st.lists(st.tuples(st.integers(0, OPEN_ROOTS - 1), st.integers(1, 2**64 - 1)), max_size=5)
settled = st.lists(st.integers(0, OPEN_ROOTS - 1), max_size=3)


def u64(numbers):
    return np.array(list(numbers), dtype=np.uint64)


def frames_of(acked=(), failed=(), lost=(), prolonged=()):
    acked = list(acked)
    columns = (u64(r for r, _ in acked), u64(x for _, x in acked), u64(failed), u64(lost), u64(prolonged))
    return [c.tobytes() for c in columns]


class Wire:
    """A link whose messages are caught, and confirmed when the test says so."""

    def __init__(self, *, met=True):
        self.messages = []
        self.link = Link("peer", "peer", 1, lambda _link, lane, message: self.messages.append(message))
        if met:
            self.link.meet(1)

    def confirm(self):
        header = Header(kind=HEARTBEAT, sender=1, receiver=1)
        header.confirmed_control = self.link.lanes[Lane.CONTROL].sent
        self.link.accept(Lane.CONTROL, header, 0)

    def fill(self):
        """Leaves no room."""
        while self.link.control_room:
            self.link.send(Lane.CONTROL, Header(kind=CREDITS), [b"x"], CONTROL_ROOM // 2)

    def sent(self, kind):
        for message in self.messages:
            header = Header.FromString(message[0])
            if header.kind == kind:
                yield header, message[1:]


class OutboxMachine(RuleBasedStateMachine):
    """However sends and waits alternate, each root arrives with the XOR of all its entries."""

    def __init__(self):
        super().__init__()
        self.wire = Wire()
        self.outbox = ControlOutbox(self.wire.link, TIMEOUT)
        self.put = defaultdict(lambda: defaultdict(int))
        self.settled = defaultdict(set)
        self.newest = {}

    @rule(
        spout=st.sampled_from(SPOUTS),
        acked=entries,
        failed=settled,
        lost=settled,
        prolonged=settled,
        times=st.sampled_from([1, 1, 1, 70]),
    )
    def acks(self, spout, acked, failed, lost, prolonged, times):
        for _ in range(times):
            self.outbox.acks(spout, frames_of(acked, failed, lost, prolonged), 0.0)
            for root, xor in acked:
                self.put[spout][root] ^= xor
        self.settled[spout, "failed"].update(failed)
        self.settled[spout, "lost"].update(lost)
        self.settled[spout, "prolonged"].update(prolonged)

    @rule(key=st.sampled_from("ab"), number=st.integers(1, 99))
    def say(self, key, number):
        self.outbox.newest(key, Header(kind=PAUSE, target=number), [key.encode()])
        self.newest[key] = number

    @rule()
    def fill(self):
        self.wire.fill()

    @rule()
    def confirm(self):
        self.wire.confirm()

    @rule()
    def flush(self):
        self.outbox.flush(1.0)

    @precondition(lambda self: not self.wire.link.control_room)
    @rule()
    def nothing_goes_out_without_room(self):
        before = len(self.wire.messages)
        self.outbox.flush(1.0)
        assert len(self.wire.messages) == before

    @invariant()
    def bounded_by_open_roots(self):
        for pending in self.outbox._acks.values():
            assert all(len(c) <= OPEN_ROOTS for c in pending.folded())
            assert len(pending) <= 2 * 66 * 5

    def teardown(self):
        while self.outbox.waiting:
            self.wire.confirm()
            self.outbox.flush(1.0)
        got, ended = defaultdict(lambda: defaultdict(int)), defaultdict(set)
        for header, frames in self.wire.sent(ACKS):
            roots, xors, failed, lost, prolonged = map(column, frames)
            for root, xor in zip(roots.tolist(), xors.tolist(), strict=True):
                got[header.target][root] ^= xor
            ended[header.target, "failed"].update(failed.tolist())
            ended[header.target, "lost"].update(lost.tolist())
            ended[header.target, "prolonged"].update(prolonged.tolist())
        assert {s: dict(v) for s, v in got.items() if v} == {s: dict(v) for s, v in self.put.items() if v}
        assert {k: v for k, v in ended.items() if v} == {k: v for k, v in self.settled.items() if v}
        last = {}
        for header, frames in self.wire.sent(PAUSE):
            last[frames[0].decode()] = header.target
        assert last == self.newest
        assert self.outbox.dropped == 0


OutboxMachine.TestCase.settings = settings(max_examples=share(100), stateful_step_count=30)
TestOutbox = OutboxMachine.TestCase


def test_what_has_room_is_passed_on_untouched():
    """Folding is for what waits."""
    wire = Wire()
    frames = frames_of([(9, 1), (2, 1)])
    ControlOutbox(wire.link, TIMEOUT).acks(3, frames, 0.0)
    assert [f for _, f in wire.sent(ACKS)] == [frames]


def test_what_waits_is_not_overtaken():
    """Acks that come when there is room again are folded into what is still unsent."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    outbox.acks(3, frames_of([(1, 1)]), 0.0)
    wire.confirm()
    outbox.acks(3, frames_of([(1, 2)]), 0.0)
    outbox.flush(0.0)
    assert [frames for _, frames in wire.sent(ACKS)] == [frames_of([(1, 3)])]


def test_of_the_rest_only_the_newest_waits():
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    for number in range(1, 50):
        outbox.newest("pause", Header(kind=PAUSE, target=number))
    wire.confirm()
    outbox.flush(0.0)
    assert [h.target for h, _ in wire.sent(PAUSE)] == [49]


def test_what_waited_longer_than_the_message_timeout_is_dropped_and_counted():
    """Each entry once: an acked root is one entry, though it has two columns."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    outbox.acks(3, frames_of([(1, 7), (2, 7), (1, 8)], failed=[4], lost=[5, 6]), 0.0)
    outbox.acks(4, frames_of([(1, 7)]), 1.0)
    outbox.flush(TIMEOUT)
    assert outbox.dropped == 0
    outbox.flush(TIMEOUT + 0.5)
    assert outbox.dropped == 5
    wire.confirm()
    outbox.flush(TIMEOUT + 0.5)
    assert [h.target for h, _ in wire.sent(ACKS)] == [4]
    assert not outbox.waiting


def test_what_waits_while_others_leave_is_not_dropped():
    """The peer takes a megabyte each 20 s."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    count = 200_000
    outbox.acks(3, frames_of(zip(range(count), range(1, count + 1), strict=True)), 0.0)
    for now in range(20, 121, 20):
        wire.confirm()
        outbox.flush(now)
    assert (outbox.waiting, outbox.dropped) == (False, 0)
    assert sum(len(frames[0]) // 8 for _, frames in wire.sent(ACKS)) == count


def test_more_than_can_be_open_is_dropped(monkeypatch):
    """Where nothing times out, and a manager is away, nothing else would bound it."""
    monkeypatch.setattr(acks, "MOST_ENTRIES", 3)
    wire = Wire()
    outbox = ControlOutbox(wire.link, math.inf)
    wire.fill()
    outbox.acks(3, frames_of([(1, 7), (2, 7), (3, 7)]), 0.0)
    outbox.flush(1e6)
    assert outbox.dropped == 0
    outbox.acks(3, frames_of([(4, 7)]), 1e6)
    outbox.flush(1e6)
    assert (outbox.waiting, outbox.dropped) == (False, 4)


def test_a_great_backlog_never_takes_more_than_the_room():
    """A hundred thousand folded entries leave in pieces, as they are confirmed."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    count = 100_000
    outbox.acks(3, frames_of(zip(range(count), range(1, count + 1), strict=True)), 0.0)
    got = []
    while outbox.waiting:
        wire.confirm()
        outbox.flush(0.0)
        assert wire.link.lanes[Lane.CONTROL].unconfirmed_bytes <= CONTROL_ROOM + ENTRIES_A_MESSAGE * 32 + 100
    for _, frames in wire.sent(ACKS):
        got += zip(column(frames[0]).tolist(), column(frames[1]).tolist(), strict=True)
    assert got == [(n, n + 1) for n in range(count)]


def test_a_new_life_of_the_peer_hears_all_acks_that_its_former_one_has_not_confirmed():
    """Sent or not, they may be for its own trees; of the rest nothing old is said to it."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    outbox.acks(3, frames_of([(9, 1)]), 0.0)
    wire.confirm()
    outbox.acks(3, frames_of([(1, 7), (2, 7)], failed=[4]), 0.0)
    wire.fill()
    outbox.acks(3, frames_of([(1, 5)], lost=[6]), 1.0)
    outbox.newest("pause", Header(kind=PAUSE))
    unconfirmed = wire.link.lanes[Lane.CONTROL].since(1)
    wire.link.meet(2)
    wire.messages.clear()
    outbox.met(unconfirmed, 2.0)
    outbox.flush(2.0)
    heard = [(Header.FromString(head).receiver, frames) for head, *frames in wire.messages]
    assert heard == [(2, frames_of([(1, 7 ^ 5), (2, 7)], failed=[4], lost=[6]))]


def test_acks_wait_for_the_first_meeting():
    """What else waits comes anew from its owner, and would come twice."""
    wire = Wire(met=False)
    outbox = ControlOutbox(wire.link, TIMEOUT)
    outbox.acks(3, frames_of([(1, 7)], lost=[2]), 0.0)
    outbox.newest("pause", Header(kind=PAUSE))
    wire.link.meet(1)
    outbox.met([], 1.0)
    outbox.flush(1.0)
    assert [frames for _, frames in wire.sent(ACKS)] == [frames_of([(1, 7)], lost=[2])]
    assert not list(wire.sent(PAUSE))


def test_pending_acks_hold_one_entry_a_root():
    """Messages are folded together every so often, not only at the end."""
    pending = PendingAcks(0.0)
    for _ in range(1000):
        pending.add([u64([1, 2]), u64([3, 3]), u64([]), u64([]), u64([])])
    assert len(pending) <= 2 * 66
    for _ in range(1000):
        pending.add([u64([]), u64([]), u64([5]), u64([6]), u64([7])])
    assert len(pending) <= 2 + 67
    assert [column.tolist() for column in pending.folded()] == [[1, 2], [0, 0], [5], [6], [7]]


def test_an_order_takes_back_what_it_contradicts():
    """Three of them while there is no room: left in their places, the first one's would be taken by the third."""
    wire = Wire()
    outbox = ControlOutbox(wire.link, TIMEOUT)
    wire.fill()
    for version, kind in enumerate((DEACTIVATE, ACTIVATE, DEACTIVATE), 1):
        pass_on(outbox, Order(kind=kind, term=1, version=version))
    wire.confirm()
    outbox.flush(0.0)
    orders = [Order.FromString(frames[0]) for _, frames in wire.sent(ORDER)]
    assert [(order.kind, order.version) for order in orders] == [(DEACTIVATE, 3)]


def test_no_ack_leaves_ahead_of_the_fail_of_its_root():
    pending = PendingAcks(0.0)
    failed = u64(range(ENTRIES_A_MESSAGE + 10))
    pending.add([u64([*range(5), ENTRIES_A_MESSAGE + 9]), u64([7] * 6), failed, u64([]), u64([])])
    first, second = pending.take(), pending.take()
    assert not pending
    assert [len(column) for column in first] == [0, 0, ENTRIES_A_MESSAGE, 0, 0]
    assert [len(column) for column in second] == [6, 6, 10, 0, 0]
