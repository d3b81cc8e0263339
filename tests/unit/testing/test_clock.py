"""Simulated time."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ardea.testing.clock import Alarm, Timeline

times = st.floats(0, 100)


def run(timeline):
    while timeline.next < math.inf:
        timeline.step()


@given(st.lists(times), st.integers())
def test_events_come_in_order_of_their_time(planned, seed):
    timeline, seen = Timeline(seed), []
    for time in planned:
        timeline.at(time, lambda: seen.append(timeline.now))
    run(timeline)
    assert seen == sorted(planned)


@given(st.integers())
def test_the_seed_decides_between_events_of_one_moment(seed):
    orders = []
    for _ in range(2):
        timeline, seen = Timeline(seed), []
        for number in range(10):
            timeline.at(1.0, lambda number=number, seen=seen: seen.append(number))
        run(timeline)
        orders.append(seen)
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(10))


def test_other_seeds_give_other_orders():
    orders = set()
    for seed in range(20):
        timeline, seen = Timeline(seed), []
        for number in range(4):
            timeline.at(1.0, lambda number=number, seen=seen: seen.append(number))
        run(timeline)
        orders.add(tuple(seen))
    assert len(orders) > 10


def test_what_was_missed_happens_now():
    timeline, seen = Timeline(0), []
    timeline.at(5, lambda: timeline.at(1, lambda: seen.append(timeline.now)))
    run(timeline)
    assert seen == [5]


@given(st.lists(times, min_size=1))
def test_an_alarm_rings_once_at_the_earliest_time(planned):
    timeline, seen = Timeline(1), []
    alarm = Alarm(timeline, lambda: seen.append(timeline.now))
    for time in planned:
        alarm.set(time)
    run(timeline)
    assert seen == [min(planned)]
    alarm.set(200)
    run(timeline)
    assert seen == [min(planned), 200]


def test_a_cancelled_alarm_is_silent():
    timeline, seen = Timeline(1), []
    alarm = Alarm(timeline, lambda: seen.append(timeline.now))
    alarm.set(3)
    alarm.cancel()
    alarm.set(7)
    run(timeline)
    assert seen == [7]
