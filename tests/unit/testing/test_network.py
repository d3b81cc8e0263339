"""The simulated network."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.lane import Lane
from ardea.testing.clock import Timeline
from ardea.testing.network import Network


def network(seed=0):
    timeline = Timeline(seed)
    return timeline, Network(timeline, seed)


def run(timeline):
    while timeline.next < math.inf:
        timeline.step()


@given(st.lists(st.sampled_from(list(Lane)), max_size=50), st.floats(0, 5), st.integers())
def test_a_lane_is_first_in_first_out(lanes, delay, seed):
    """Also when its delay shrinks between two messages."""
    timeline, net = network(seed)
    seen = {lane: [] for lane in Lane}
    for number, lane in enumerate(lanes):
        net.delay("a", "b", delay if number % 2 == 0 else 0)
        net.send("a", "b", lane, lambda lane=lane, number=number: seen[lane].append(number))
    run(timeline)
    for lane in Lane:
        assert seen[lane] == [number for number, each in enumerate(lanes) if each is lane]
    assert net.lost == 0


def test_a_cut_loses_what_is_on_its_way_and_what_is_sent():
    timeline, net = network()
    seen = []
    net.send("a", "b", Lane.DATA, lambda: seen.append(1))
    net.cut("b", "a")
    net.send("a", "b", Lane.DATA, lambda: seen.append(2))
    net.send("b", "a", Lane.DATA, lambda: seen.append(3))
    net.send("a", "c", Lane.DATA, lambda: seen.append(4))
    run(timeline)
    assert (seen, net.lost) == ([4], 3)
    net.heal("a", "b")
    net.send("a", "b", Lane.DATA, lambda: seen.append(5))
    run(timeline)
    assert seen == [4, 5]


def test_a_delay_holds_for_both_directions():
    timeline, net = network()
    seen = []
    net.delay("a", "b", 2)
    net.send("b", "a", Lane.CONTROL, lambda: seen.append(timeline.now))
    run(timeline)
    assert 2 < seen[0] < 2.001


def test_drops_lose_about_their_part():
    timeline, net = network()
    seen = []
    net.drop("a", "b", 0.3)
    for number in range(1000):
        net.send("a", "b", Lane.DATA, lambda number=number: seen.append(number))
    run(timeline)
    assert 600 < len(seen) < 800
    assert net.lost == 1000 - len(seen)
    assert seen == sorted(seen)
