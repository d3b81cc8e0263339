"""Two links joined by a network that loses, doubles, delays and cuts, with restarts of either end."""

from collections import Counter, defaultdict, deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ardea.protocol.lane import Arrival, Lane, LaneState
from ardea.protocol.link import CONFIRM_AFTER, CONTROL_ROOM, Link
from ardea.protocol.wire_pb2 import ACKS, HEARTBEAT, HELLO, RESEND, ROWS, Header
from tests.sizes import share

KINDS = {Lane.DATA: ROWS, Lane.CONTROL: ACKS}


class End:
    """One process's side: what its owner does with a link, and what it saw."""

    def __init__(self, name, life, port):
        self.name, self.life = name, life
        self.link = Link(name, f"process {name}", life, lambda _link, lane, message: port(lane, message))
        self.sent = defaultdict(list)  # (peer's life, lane) -> messages
        self.got = defaultdict(list)
        self.returned = []  # (former life, messages)

    def hello(self):
        self.link.signal(Header(kind=HELLO), [b"hello"])

    def beat(self):
        if self.link.up:
            self.link.heartbeat()
        else:
            self.hello()

    def send(self, lane, number, size):
        self.sent[self.link.peer, lane].append(number)
        self.link.send(lane, Header(kind=KINDS[lane], rows=size), [b"%d" % number], size)

    def receive(self, lane, message):
        header = Header.FromString(message[0])
        if header.kind == HELLO:
            former = self.link.peer
            left = self.link.meet(header.sender)
            if left is not None:
                self.returned.append((former, [int(m[1]) for m in left]))
            if header.receiver != self.life:
                self.hello()
        elif self.link.accept(lane, header, header.rows) and header.kind in KINDS.values():
            assert header.kind == KINDS[lane]
            self.got[header.sender, lane].append(int(message[1]))


def test_a_link_does_not_rest_while_a_message_is_not_confirmed():
    link = Link("b", "process b", 1, lambda *_: None)
    link.meet(1)
    link.send(Lane.CONTROL, Header(kind=ACKS))
    for _ in range(30):
        link.accept(Lane.CONTROL, Header(kind=HEARTBEAT, sender=1, receiver=1), 0)
        assert link.needs_heartbeat()
    link.accept(Lane.CONTROL, Header(kind=HEARTBEAT, sender=1, receiver=1, confirmed_control=1), 0)
    for _ in range(9):
        link.accept(Lane.CONTROL, Header(kind=HEARTBEAT, sender=1, receiver=1), 0)
        assert link.needs_heartbeat()
    assert not link.needs_heartbeat()


class Network:
    """A FIFO for each direction and lane; what was delivered last can come again, as after a reconnect."""

    def __init__(self):
        self.queues = {(to, lane): deque() for to in "ab" for lane in Lane}
        self.delivered = {key: [] for key in self.queues}
        self.kinds = Counter()
        self.ends = {}
        self.lives = {"a": 0, "b": 0}
        for name in "ab":
            self.start(name)

    def start(self, name):
        self.lives[name] += 1
        other = "b" if name == "a" else "a"
        self.ends[name] = End(name, self.lives[name], lambda lane, message: self.put(other, lane, message))

    def put(self, to, lane, message):
        self.kinds[Header.FromString(message[0]).kind] += 1
        self.queues[to, lane].append(message)

    def deliver(self, key):
        message = self.queues[key].popleft()
        self.delivered[key].append(message)
        self.ends[key[0]].receive(key[1], message)

    def cut(self, key, lost, again):
        """The connection breaks: the last ``lost`` messages are gone, the last ``again`` come once more."""
        for _ in range(min(lost, len(self.queues[key]))):
            self.queues[key].pop()
        if again:
            self.queues[key].extendleft(reversed(self.delivered[key][-again:]))

    def quiet(self):
        while any(self.queues.values()):
            for key, queue in self.queues.items():
                if queue:
                    self.deliver(key)

    def round(self):
        for end in self.ends.values():
            end.beat()
        self.quiet()


keys = st.tuples(st.sampled_from("ab"), st.sampled_from(Lane))


class LinkMachine(RuleBasedStateMachine):
    """Whatever happened, two living processes get each other's messages once and in order."""

    @initialize(met=st.booleans())
    def start(self, met):
        self.network = Network()
        self.number = 0
        self.former = []
        if met:
            self.network.round()

    @property
    def ends(self):
        return self.network.ends

    @rule(
        name=st.sampled_from("ab"),
        lane=st.sampled_from(Lane),
        count=st.integers(1, 4),
        size=st.sampled_from([1, 100, 300_000]),
    )
    def send(self, name, lane, count, size):
        """The owner looks for room on the control lane; data is kept even before the peer was heard."""
        end = self.ends[name]
        for _ in range(count):
            if lane is Lane.DATA or end.link.control_room:
                self.number += 1
                end.send(lane, self.number, size)

    @rule(key=keys, count=st.integers(1, 5))
    def deliver(self, key, count):
        for _ in range(min(count, len(self.network.queues[key]))):
            self.network.deliver(key)

    @rule(key=keys, lost=st.integers(0, 6), again=st.integers(0, 6))
    def cut(self, key, lost, again):
        self.network.cut(key, lost, again)

    @rule(name=st.sampled_from("ab"))
    def beat(self, name):
        self.ends[name].beat()

    @precondition(lambda self: sum(self.network.lives.values()) < 6)
    @rule(name=st.sampled_from("ab"))
    def restart(self, name):
        """What is on its way from and to the former life still arrives."""
        self.former.append(self.ends[name])
        self.network.start(name)
        self.ends[name].hello()

    @invariant()
    def in_order_and_once(self):
        if not hasattr(self, "network"):
            return
        everyone = [*self.former, *self.ends.values()]
        by_life = {(end.name, end.life): end for end in everyone}
        for end in everyone:
            other = "b" if end.name == "a" else "a"
            for (life, lane), got in end.got.items():
                sent = by_life[other, life].sent[end.life, lane]
                assert got == sent[: len(got)], "lost, doubled or reordered between two lives"

    @invariant()
    def unconfirmed_control_is_bounded(self):
        if not hasattr(self, "network"):
            return
        for end in self.ends.values():
            state = end.link.lanes[Lane.CONTROL]
            assert state.unconfirmed_bytes <= CONTROL_ROOM + 300_100
            assert state.unconfirmed_bytes == sum(size for _, _, size in state.unconfirmed)

    def teardown(self):
        if not hasattr(self, "network"):
            return
        for _ in range(16):
            self.network.round()
        a, b = self.ends["a"], self.ends["b"]
        assert (a.link.peer, b.link.peer) == (b.life, a.life)
        assert a.link.up
        assert b.link.up
        for end, other in ((a, b), (b, a)):
            for lane in Lane:
                assert other.got[end.life, lane] == end.sent[other.life, lane]
            assert all(state.unconfirmed_bytes == 0 and not state.unconfirmed for state in end.link.lanes)
        self.nothing_is_forgotten()
        before = self.network.kinds[RESEND], a.link.statistics.resent, b.link.statistics.resent
        for _ in range(3):
            self.network.round()
        assert before == (self.network.kinds[RESEND], a.link.statistics.resent, b.link.statistics.resent)
        assert not any(self.network.queues.values())

    def nothing_is_forgotten(self):
        """Data for a former life either got there, or meet() gave it back, once."""
        for end in self.ends.values():
            other = "b" if end.name == "a" else "a"
            assert len({former for former, _ in end.returned}) == len(end.returned)
            returned = dict(end.returned)
            lives = {o.life: o for o in [*self.former, *self.ends.values()] if o.name == other}
            for (life, lane), sent in end.sent.items():
                if lane is Lane.DATA and life != self.ends[other].life:
                    got = lives[life].got[end.life, lane] if life else []
                    back = returned[life]
                    assert back == sent[len(sent) - len(back) :]
                    assert set(sent) <= {*got, *back}


LinkMachine.TestCase.settings = settings(max_examples=share(150), stateful_step_count=40)
TestLink = LinkMachine.TestCase


@pytest.fixture
def network():
    made = Network()
    made.round()
    made.kinds.clear()
    return made


def test_a_lost_tail_heals_with_the_second_heartbeat(network):
    """Nothing follows that could show the gap."""
    a, b = network.ends["a"], network.ends["b"]
    for number in range(3):
        a.send(Lane.DATA, number, 10)
    network.cut(("b", Lane.DATA), lost=2, again=0)
    network.quiet()
    assert b.got[1, Lane.DATA] == [0]
    for _ in range(2):
        network.round()
    assert b.got[1, Lane.DATA] == [0, 1, 2]
    assert a.link.statistics.resent == 2


def test_a_heartbeat_that_overtakes_data_asks_for_nothing(network):
    """The lanes are two sockets: data that is late is not lost."""
    a, b = network.ends["a"], network.ends["b"]
    for number in range(5):
        a.send(Lane.DATA, number, 10)
        network.quiet()
        network.round()
        a.send(Lane.DATA, number + 5, 10)
        a.beat()
        while network.queues["b", Lane.CONTROL]:
            network.deliver(("b", Lane.CONTROL))
        network.quiet()
    assert b.got[1, Lane.DATA] == [0, 5, 1, 6, 2, 7, 3, 8, 4, 9]
    assert network.kinds[RESEND] == a.link.statistics.resent == 0


def test_confirmations_under_load_do_not_hide_a_lost_tail(network):
    """What a sends because b sends much says nothing of a's own sequence."""
    a, b = network.ends["a"], network.ends["b"]
    a.send(Lane.DATA, 1, 10)
    network.cut(("b", Lane.DATA), lost=1, again=0)
    for _ in range(4):
        b.send(Lane.DATA, 2, CONFIRM_AFTER)
        network.quiet()
        network.round()
    assert b.got[1, Lane.DATA] == [1]


def test_a_lane_that_is_cut_is_not_filled_with_repetitions(network):
    """The control lane asks each second; all that is unconfirmed is sent again once, then one message a time."""
    a = network.ends["a"]
    for number in range(20):
        a.send(Lane.DATA, number, 10)
    for _ in range(30):
        for end in network.ends.values():
            end.beat()
        for name in "ab":
            while network.queues[name, Lane.CONTROL]:
                network.deliver((name, Lane.CONTROL))
    assert len(network.queues["b", Lane.DATA]) < 20 * 2 + 30
    network.quiet()
    assert network.ends["b"].got[1, Lane.DATA] == list(range(20))


def test_a_gap_is_asked_for_once(network):
    """Every message behind a gap shows it; one request is enough."""
    a, b = network.ends["a"], network.ends["b"]
    a.send(Lane.DATA, 0, 10)
    network.cut(("b", Lane.DATA), lost=1, again=0)
    for number in range(1, 50):
        a.send(Lane.DATA, number, 10)
    network.quiet()
    assert b.got[1, Lane.DATA] == list(range(50))
    assert network.kinds[RESEND] == 1
    assert b.link.statistics.gaps == 49


def test_a_request_that_is_lost_is_made_again(network):
    """Each of its own heartbeats allows another try."""
    a, b = network.ends["a"], network.ends["b"]
    a.send(Lane.DATA, 0, 10)
    network.cut(("b", Lane.DATA), lost=1, again=0)
    a.send(Lane.DATA, 1, 10)
    network.deliver(("b", Lane.DATA))
    network.cut(("a", Lane.CONTROL), lost=1, again=0)
    for _ in range(3):
        network.round()
    assert b.got[1, Lane.DATA] == [0, 1]


def test_one_way_traffic_is_confirmed_before_the_next_heartbeat(network):
    """Or what the sender keeps would grow with the rate."""
    a = network.ends["a"]
    for number in range(100):
        a.send(Lane.DATA, number, 10_000)
        network.quiet()
    assert a.link.lanes[Lane.DATA].unconfirmed_bytes < CONFIRM_AFTER + 20_000


def test_a_hello_that_is_lost_is_said_again(network):
    """b starts again and hears a, but a never hears b's hello: three silent heartbeats later they know each other."""
    network.start("b")
    network.ends["a"].hello()
    network.deliver(("b", Lane.CONTROL))
    assert network.ends["b"].link.up
    network.cut(("a", Lane.CONTROL), lost=9, again=0)
    for _ in range(6):
        network.round()
    assert network.ends["a"].link.peer == 2
    assert network.ends["a"].link.up


def test_a_peer_that_falls_silent_is_not_up_until_it_is_heard_again(network):
    """Its owner then says hello; what was sent is neither lost nor given back."""
    a, b = network.ends["a"], network.ends["b"]
    a.send(Lane.DATA, 1, 10)
    for key in network.queues:
        network.cut(key, lost=9, again=0)
    for _ in range(3):
        assert a.link.up
        a.beat()
    assert not a.link.up
    for key in network.queues:
        network.cut(key, lost=9, again=0)
    for _ in range(3):
        network.round()
    assert a.link.up
    assert a.link.statistics.reconnects == 1
    assert b.got[1, Lane.DATA] == [1]
    assert [former for former, _ in a.returned] == [0]


@pytest.mark.parametrize("first", [Lane.DATA, Lane.CONTROL])
def test_what_overtakes_the_hello_arrives_without_a_heartbeat(network, first):
    """The lanes are two sockets: to one who is new, data may come before it knows who sends."""
    network.start("b")
    a, b = network.ends["a"], network.ends["b"]
    b.hello()
    network.deliver(("a", Lane.CONTROL))
    network.kinds.clear()
    for number in range(3):
        a.send(Lane.DATA, number, 10)
    while network.queues["b", first]:
        network.deliver(("b", first))
    network.quiet()
    assert b.got[1, Lane.DATA] == [0, 1, 2]
    assert network.kinds[RESEND] == (first is Lane.DATA)


def test_messages_of_another_life_never_get_through(network):
    """From a former sender, for a former receiver, or before a hello."""
    a, b = network.ends["a"], network.ends["b"]
    a.send(Lane.DATA, 1, 10)
    network.start("b")
    network.deliver(("b", Lane.DATA))
    assert network.ends["b"].link.statistics.stale == 1
    b.send(Lane.DATA, 2, 10)
    network.round()
    assert a.got == {}
    assert a.returned == [(0, []), (1, [1])]


def test_an_older_hello_changes_nothing(network):
    link = network.ends["a"].link
    assert link.meet(3) == []
    assert link.meet(2) is None
    assert link.peer == 3


def test_lane_state_judges_each_number():
    """Next, known, or too early; a restart begins at one and gives back what was never confirmed."""
    state = LaneState()
    assert [state.arrive(n) for n in (1, 1, 3, 2, 3)] == [
        Arrival.NEXT,
        Arrival.DUPLICATE,
        Arrival.GAP,
        Arrival.NEXT,
        Arrival.NEXT,
    ]
    for number in range(1, 4):
        state.sent = number
        state.keep([b"%d" % number], 10)
    state.confirm(1)
    assert (state.unconfirmed_bytes, state.since(3)) == (20, [[b"3"]])
    assert state.restart() == [[b"2"], [b"3"]]
    assert (state.sent, state.received, state.unconfirmed_bytes, state.restart()) == (0, 0, 0, [])


def test_heartbeats_carry_both_sequences(network):
    """What an owner adds to a heartbeat travels with it."""
    a = network.ends["a"]
    a.send(Lane.DATA, 1, 10)
    network.quiet()
    a.link.heartbeat(Header(epoch=4))
    header = Header.FromString(network.queues["b", Lane.CONTROL][-1][0])
    assert (header.kind, header.epoch, header.sequence_data, header.sequence_control) == (HEARTBEAT, 4, 1, 0)
