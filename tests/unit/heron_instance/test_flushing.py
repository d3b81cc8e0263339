"""Flushes take a share of the time, what is saved is for bursts, and nothing waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.flushing import AFTER, SAVED, SHARE, Flushing

LONGEST = 0.01


def test_the_first_is_due_at_once():
    assert Flushing(LONGEST).due(5.0, idle=True) <= 5.0
    assert Flushing(LONGEST).due(5.0, idle=False) <= 5.0


def test_who_has_more_at_hand_waits_a_little_and_who_has_not_does_not():
    flushing = Flushing(LONGEST)
    flushing.flushed(1.0, 1.001)
    assert flushing.due(1.0011, idle=True) == 1.0011
    assert flushing.due(1.0011, idle=False) == pytest.approx(1.001 + AFTER)


def test_when_nothing_is_saved_a_flush_is_paid_for_by_the_time_after_it():
    flushing = Flushing(longest=100.0)
    flushing.flushed(1.0, 1.0 + SAVED + 0.003)
    ended = 1.0 + SAVED + 0.003
    assert flushing.due(ended, idle=True) == pytest.approx(ended + 0.003 / SHARE)


def test_nothing_waits_longer_than_it_may():
    flushing = Flushing(LONGEST)
    flushing.flushed(1.0, 2.0)
    assert flushing.due(2.0, idle=True) == pytest.approx(2.0 + LONGEST)
    assert flushing.due(2.0, idle=False) == pytest.approx(2.0 + LONGEST)


@given(steps=st.lists(st.tuples(st.floats(0, 0.05), st.floats(1e-5, 0.005), st.booleans()), max_size=60))
def test_no_more_than_a_share_goes_into_flushes_beside_what_was_saved(steps):
    flushing = Flushing(longest=1e9)
    now = spent = 0.0
    for pause, cost, idle in steps:
        now = max(now + pause, flushing.due(now + pause, idle=idle))
        flushing.flushed(now, now + cost)
        now += cost
        spent += cost
        assert spent <= SAVED + SHARE * now + cost + 1e-9
