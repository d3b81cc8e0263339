"""Links that rest: a peer that is there is never taken for silent, one that is gone is missed in time."""

from __future__ import annotations

import heapq
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.pulse import PATIENT, REST_AFTER, SILENT_AFTER, Pulse

phases = st.integers(0, 9).map(lambda tenths: tenths / 10)
delays = st.sampled_from([0.01, 0.13, 0.37])  # nothing arrives at the very moment of a look


class End:
    def __init__(self, patience):
        self.pulse, self.numbered, self.silences, self.alive = Pulse(patience), 0, [], True


class Pair:
    """Two ends that look each second, each at its own moment, and a way that takes some time or loses a word."""

    def __init__(self, phase_a, phase_b, delay):
        self.ends, self.delay, self.now, self.order = (
            {"a": End(PATIENT), "b": End(REST_AFTER)},
            delay,
            0.0,
            itertools.count(),
        )
        self.loses = set()  # heartbeats that are lost, by their number
        self.beats = 0
        self.due = [(phase_a, next(self.order), "look", "a", False), (phase_b, next(self.order), "look", "b", False)]
        heapq.heapify(self.due)

    def until(self, time):
        while self.due[0][0] <= time:
            self.now, _, what, name, asks = heapq.heappop(self.due)
            end = self.ends[name]
            if not end.alive:
                continue
            if what == "look":
                self.put(1.0, "look", name)
                self.look(name, end)
            else:
                end.pulse.heard()
                end.numbered += what == "data"
                if asks and end.pulse.asked():
                    self.beat(name, asks=False)
        self.now = time

    def put(self, after, what, name, asks=False):
        heapq.heappush(self.due, (self.now + after, next(self.order), what, name, asks))

    def look(self, name, end):
        if end.pulse.needs_beat(end.numbered, waits=False):
            end.pulse.beats()
            self.beat(name, asks=True)
        if end.pulse.silent:
            end.silences.append(self.now)

    def beat(self, name, *, asks):
        self.beats += 1
        if self.beats not in self.loses:
            self.put(self.delay, "beat", "b" if name == "a" else "a", asks)

    def data(self, name):
        """A numbered message from that end."""
        self.ends[name].numbered += 1
        self.put(self.delay, "data", "b" if name == "a" else "a")


@given(phases, phases, delays, st.lists(st.tuples(st.floats(0.0, 8.0), st.sampled_from("ab")), max_size=8))
def test_who_is_there_is_never_silent(phase_a, phase_b, delay, words):
    """Whenever the last numbered message was sent."""
    pair = Pair(phase_a, phase_b, delay)
    for pause, name in words:
        pair.until(pair.now + pause)
        pair.data(name)
    pair.until(pair.now + 60.0)
    assert [end.silences for end in pair.ends.values()] == [[], []]


@given(phases, phases, delays)
def test_a_link_that_rests_takes_one_word_each_way_in_ten_seconds(phase_a, phase_b, delay):
    pair = Pair(phase_a, phase_b, delay)
    pair.until(3 * REST_AFTER)
    said = pair.beats
    pair.until(13 * REST_AFTER)
    assert pair.beats - said <= 2 * (10 * REST_AFTER / (REST_AFTER - 1) + 1)


@given(phases, phases, delays, st.sets(st.integers(1, 60), max_size=10))
def test_one_lost_heartbeat_makes_nobody_silent(phase_a, phase_b, delay, lost):
    """Nor do several that are not lost one after the other."""
    pair = Pair(phase_a, phase_b, delay)
    pair.loses = {number for number in lost if number - 1 not in lost and number - 2 not in lost}
    pair.until(120.0)
    assert [end.silences for end in pair.ends.values()] == [[], []]


@pytest.mark.parametrize("phase", [0.0, 0.2, 0.5, 0.8])
def test_whichever_heartbeat_is_lost_nobody_is_silent(phase):
    """One that an end has left out because it went to rest is not missed either."""
    for number in range(1, 60):
        pair = Pair(0.1, phase, 0.13)
        pair.loses = {number}
        pair.until(70.0)
        assert [end.silences for end in pair.ends.values()] == [[], []], number


@pytest.mark.parametrize(("resting", "seconds"), [(False, SILENT_AFTER), (True, PATIENT + SILENT_AFTER)])
@given(phase_a=phases, phase_b=phases, delay=delays)
def test_who_is_gone_is_missed(resting, seconds, phase_a, phase_b, delay):
    """After three seconds where something moved lately; after ten more where nothing did."""
    pair = Pair(phase_a, phase_b, delay)
    pair.until(REST_AFTER / 2 + (30.0 if resting else 0.0))
    pair.ends["b"].alive = False
    gone = pair.now
    pair.until(gone + 30.0)
    assert pair.ends["a"].silences[0] <= gone + seconds + delay + 1.0


@given(phases, phases, delays)
def test_who_sends_to_one_that_is_gone_misses_it_after_three_seconds(phase_a, phase_b, delay):
    pair = Pair(phase_a, phase_b, delay)
    pair.until(35.0)
    pair.ends["b"].alive = False
    pair.until(35.0 + 0.5)
    pair.data("a")
    pair.until(60.0)
    assert pair.ends["a"].silences[0] <= 35.5 + SILENT_AFTER + 1.0


def test_a_link_that_was_silent_does_not_rest_at_once():
    """What is true has to be said again."""
    pulse = Pulse()
    for _ in range(REST_AFTER + SILENT_AFTER + 5):
        pulse.needs_beat(0, waits=False)
        pulse.beats()
    assert pulse.silent
    pulse.heard()
    assert pulse.needs_beat(0, waits=False)


def test_a_link_on_which_something_waits_does_not_rest():
    pulse = Pulse()
    for _ in range(3 * REST_AFTER):
        pulse.heard()
        assert pulse.needs_beat(5, waits=True)
        pulse.beats()
