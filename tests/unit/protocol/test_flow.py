"""Credit: order, bounds, no deadlock; and windows that follow their consumer."""

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea.protocol.flow import START_BYTES, START_ROWS, Channel, Window, divide
from tests.sizes import share

LIMIT = 1 << 20
HORIZON = 5.0

markers = st.just((0, 0))
inits = st.tuples(st.just(0), st.integers(1, 2000))
batches = st.tuples(st.integers(1, 60), st.integers(1, 10_000))


class ChannelMachine(RuleBasedStateMachine):
    """A sender, a consumer of any pace, and credits that come late, twice or in any order."""

    def __init__(self):
        super().__init__()
        self.channel = Channel()
        self.offered = []
        self.out = []
        self.way = deque()  # sent, not consumed
        self.consumed = (0, 0)
        self.window = (START_ROWS, START_BYTES)
        self.credits = []

    def passed_on(self, items):
        """Each was sent while less than the window was on its way."""
        for number in items:
            sent = [self.offered[n] for n in self.out]
            assert sum(rows for _, rows, _ in sent) - self.channel.consumed_rows < self.channel.window_rows
            assert sum(size for _, _, size in sent) - self.channel.consumed_bytes < self.channel.window_bytes
            self.out.append(number)
            self.way.append(number)

    @rule()
    def opens(self):
        self.channel.open = True

    @rule(batch=st.one_of(markers, inits, batches))
    def offer(self, batch):
        number = len(self.offered)
        self.offered.append((number, *batch))
        if self.channel.offer(number, *batch):
            self.passed_on([number])

    @precondition(lambda self: self.way)
    @rule(count=st.integers(1, 5))
    def consume(self, count):
        for _ in range(min(count, len(self.way))):
            _, rows, size = self.offered[self.way.popleft()]
            self.consumed = (self.consumed[0] + rows, self.consumed[1] + size)

    @rule(rows=st.integers(1, 100), size=st.integers(1, 20_000))
    def says(self, rows, size):
        """The consumer's word, on its way."""
        self.credits.append((*self.consumed, rows, size))

    @precondition(lambda self: self.credits)
    @rule(place=st.integers(0, 9), keep=st.booleans())
    def credit(self, place, keep):
        place %= len(self.credits)
        self.channel.credit(*(self.credits[place] if keep else self.credits.pop(place)))
        self.passed_on(self.channel.release())

    @invariant()
    def first_in_first_out(self):
        assert self.out == list(range(len(self.out)))
        assert [item for item, _, _ in self.channel.held] == list(range(len(self.out), len(self.offered)))

    @invariant()
    def counts_add_up(self):
        channel = self.channel
        for held, sent, place in (
            (channel.held_rows, channel.sent_rows, 1),
            (channel.held_bytes, channel.sent_bytes, 2),
        ):
            assert held + sent == sum(batch[place] for batch in self.offered)
        assert channel.held_rows == sum(rows for _, rows, _ in channel.held)
        assert channel.held_bytes == sum(size for _, _, size in channel.held)
        assert channel.inflight_rows == channel.sent_rows - channel.consumed_rows >= 0
        assert channel.inflight_bytes == channel.sent_bytes - channel.consumed_bytes >= 0
        assert channel.open or not self.out

    def teardown(self):
        """However small the window and odd the credits: what the consumer takes makes room for the rest."""
        self.channel.open = True
        for _ in range(len(self.offered) + 1):
            while self.way:
                self.consume(1)
            self.channel.credit(*self.consumed, 1, 1)
            self.passed_on(self.channel.release())
            self.first_in_first_out()
        assert not self.channel.held
        assert len(self.out) == len(self.offered)
        assert (self.channel.held_rows, self.channel.held_bytes) == (0, 0)


ChannelMachine.TestCase.settings = settings(max_examples=share(100), stateful_step_count=30)
TestChannel = ChannelMachine.TestCase


def test_a_restart_forgets_what_was_sent_and_keeps_what_is_held():
    """Towards a new incarnation everything starts again, the window too."""
    channel = Channel(open=True)
    channel.credit(0, 0, 1000, 100_000)
    assert channel.offer("a", 1000, 4096)
    assert not channel.offer("b", 2000, 10)
    channel.restart()
    assert (channel.inflight_rows, channel.inflight_bytes, channel.held_rows) == (0, 0, 2000)
    assert (channel.window_rows, channel.window_bytes) == (START_ROWS, START_BYTES)
    assert channel.release() == ["b"]


def test_an_older_credit_changes_nothing_but_the_window():
    """The counters are cumulative: credits may overtake one another."""
    channel = Channel(open=True)
    assert channel.offer("a", 10, 100)
    channel.credit(10, 100, 50, 5000)
    channel.credit(4, 40, 20, 2000)
    assert (channel.inflight_rows, channel.inflight_bytes) == (0, 0)
    assert (channel.window_rows, channel.window_bytes) == (20, 2000)


def test_nothing_moves_before_the_consumer_is_known():
    channel = Channel()
    assert not channel.offer("a", 1, 1)
    assert channel.release() == []
    channel.open = True
    assert channel.release() == ["a"]


@given(st.integers(0, 10**9), st.integers(0, 100))
def test_shares_add_up_to_no_more_than_the_whole(total, among):
    """Except that each sender gets at least one, or it could never send."""
    share = divide(total, among)
    assert share >= 1
    assert share == 1 or share * max(1, among) <= total


measurements = st.tuples(
    st.integers(0, 5000), st.integers(0, 200_000), st.floats(0, 20, allow_nan=False, allow_subnormal=False)
)


@given(st.lists(measurements, max_size=60))
def test_a_window_stays_within_its_limits(taken):
    """Never over the byte setting, nor over the horizon at any rate measured since the window last changed."""
    window = Window(LIMIT, HORIZON)
    assert (window.rows, window.bytes) == (16, 4096)
    rows_since = busy_since = 0.0
    for rows, size, busy in taken:
        before = (window.rows, window.bytes)
        changed = window.consumed(rows, size if rows else 0, busy)
        rows_since, busy_since = rows_since + rows, busy_since + busy
        assert changed == (before != (window.rows, window.bytes))
        assert 1 <= window.rows <= before[0] * 2
        assert 1 <= window.bytes <= min(before[1] * 2, LIMIT)
        assert 1 <= window.pace <= max(START_ROWS, window.rows // 2)
        if not window._rows_since:  # measured just now
            if rows_since:
                measured = rows_since / max(busy_since, 1e-6)
                assert window.rate <= max(measured, window.rate)
                assert window.rows <= max(1.0, window.rate * HORIZON)
                if window.rows < before[0]:
                    assert window.rate <= measured
            rows_since = busy_since = 0.0


def test_a_window_doubles_as_it_is_consumed():
    """A window's worth, in rows or in bytes, whichever is reached first."""
    window = Window(LIMIT, HORIZON)
    assert not window.consumed(15, 100, 1e-5)
    assert window.consumed(1, 100, 1e-6)
    assert (window.rows, window.bytes) == (32, 8192)
    assert window.consumed(1, 8192, 1e-6)
    assert (window.rows, window.bytes) == (64, 16384)
    for _ in range(20):
        window.consumed(window.rows, 10, window.rows / 1e6)
    assert (window.rows, window.bytes) == (5_000_000, LIMIT)


def test_idle_time_says_nothing_about_speed():
    """Only the time in which there was something to consume is measured."""
    window = Window(LIMIT, HORIZON)
    window.consumed(16, 160, 0.001)
    assert window.rate == pytest.approx(16_000)
    assert window.size == 10


@given(st.lists(measurements, max_size=30))
def test_a_consumer_that_becomes_slow_shrinks_its_window_at_once(history):
    """One measurement of 100 ms a row, whatever went before, leaves no more than five seconds of work."""
    window = Window(LIMIT, HORIZON)
    for rows, size, busy in history:
        window.consumed(rows, size, busy)
    window._rows_since = window._bytes_since = 0
    window._busy = 0.0
    window.consumed(10, 100, 1.0)
    assert window.rows <= 50
    assert window.pace <= 10
    assert window.watermark[0] <= 50


@given(st.lists(measurements, max_size=30))
def test_no_hiccup_collapses_a_window_for_ever(history):
    """At a steady pace the window grows back to all that its limits allow."""
    window = Window(LIMIT, HORIZON)
    for rows, size, busy in history:
        window.consumed(rows, size, busy)
    for _ in range(200):
        rows = window.pace
        window.consumed(rows, rows * 100, rows / 10_000)
        if window.rows > 49_000 and window.bytes == LIMIT:
            break
    assert window.rows == pytest.approx(50_000, rel=0.02)
    assert window.bytes == LIMIT


@settings(max_examples=share(40))
@given(st.lists(st.tuples(st.sampled_from([1e-6, 1e-4, 0.01, 0.1, 1.0]), st.integers(1, 400)), min_size=1, max_size=6))
def test_a_window_holds_five_seconds_of_work_and_one_batch(phases):
    """A sender that always has more: one measurement of a slower pace is enough to shrink it."""
    window, channel = Window(LIMIT, HORIZON), Channel(open=True)
    way, taken = deque(), [0, 0]
    channel.credit(0, 0, window.rows, window.bytes)

    def fill():
        while not channel.held:
            rows = window.pace
            if channel.offer(rows, rows, rows * 50):
                way.append(rows)

    for per_row, count in phases:
        measurements_done = 0  # the first may still be of both paces
        while count > 0:
            fill()
            assert way, "deadlock"
            rows = way.popleft()
            count -= rows
            taken[0] += rows
            taken[1] += rows * 50
            window.consumed(rows, rows * 50, rows * per_row)
            channel.credit(*taken, window.rows, window.bytes)
            way.extend(channel.release())
            measurements_done += window._rows_since == 0
            if measurements_done >= 2:
                assert window.rows * per_row <= max(HORIZON, per_row) * 1.001
