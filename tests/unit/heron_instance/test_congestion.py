"""The congestion window: what was acked lately, and a probe that never starves a bolt that acks nothing yet."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.congestion import STEP, CongestionWindow
from ardea.protocol.flow import START_ROWS

TIMEOUT = 30.0
LATELY = TIMEOUT / 4
MOST = 20_000
acks = st.tuples(st.just("acked"), st.integers(0, 10_000), st.floats(0, TIMEOUT))
events = st.lists(
    st.tuples(st.floats(0, 20), st.one_of(acks, st.just(("full",)), st.just(("congested",)))), max_size=40
)


def after(happened, timeout=TIMEOUT):
    """A window to which that happened, the time, and for how long it has to be silent before it grows."""
    now, silence = 100.0, STEP
    window = CongestionWindow(timeout, now)
    for seconds, (what, *ack) in happened:
        now += seconds
        if ack:
            rows, latency = ack
            window.acked(rows, now, latency)
            silence = max(STEP, latency / 8)
        else:
            getattr(window, what)(now)
    return window, now, silence


def test_it_begins_with_few_rows_and_doubles_each_time_all_of_it_was_acked():
    window, now = CongestionWindow(TIMEOUT, 0.0), 0.0
    sizes = [window.rows(now)]
    while sizes[-1] < MOST:
        now += 0.005
        window.acked(sizes[-1], now, 0.005)
        sizes.append(window.rows(now))
    assert sizes[0] == START_ROWS
    assert all(1.95 * a < b <= 2 * a for a, b in pairwise(sizes)), sizes
    assert now < 0.1


@given(st.lists(st.tuples(st.floats(0, 20), st.integers(0, 10_000)), max_size=40))
def test_what_was_acked_fades(batches):
    window, now, _ = after([(seconds, ("acked", rows, 1.0)) for seconds, rows in batches])
    ages = [sum(seconds for seconds, _ in batches[i + 1 :]) for i in range(len(batches))]
    lately = sum(rows * math.exp(-age / LATELY) for (_, rows), age in zip(batches, ages, strict=True))
    assert window.rows(now) == pytest.approx(START_ROWS + lately, abs=1, rel=1e-6)


@pytest.mark.parametrize("rate", [1, 10, 50, 500, 50_000])
def test_at_a_steady_rate_no_tree_waits_much_longer_than_a_quarter_of_the_timeout(rate):
    window, now = CongestionWindow(TIMEOUT, 0.0), 0.0
    while now < 3 * TIMEOUT:
        now += 1 / min(rate, 100)
        window.acked(rate // min(rate, 100), now, window.rows(now) / rate)
        window.full(now + 1 / min(rate, 100))
        assert window.rows(now) <= START_ROWS + rate * LATELY + max(1, rate / 100), "one by one is not silence"
    assert window.rows(now) > 0.95 * rate * LATELY


@given(events)
def test_whatever_went_before_it_grows_without_a_pause_until_all_pending_may_be_open(happened):
    window, began, silence = after(happened)
    now = began
    while window.rows(now) < MOST:
        now = max(now, window.full(now))
    assert now <= began + silence + 11.01 * STEP


@given(events)
def test_congestion_takes_back_what_it_had_grown_without_knowing(happened):
    window, now, silence = after(happened)
    window.full(now)
    window.congested(now)
    grown, probing = window.rows(now), window.full(now)
    assert window.rows(now) == grown, "not at once"
    assert (probing, window.full(probing)) == (now + silence, now + silence + STEP)
    window.congested(now)
    assert window.rows(now) == grown
    assert window.rows(now + 1e4) == START_ROWS
