"""The word for a topology's health, and the lines below it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.health import Health, HealthState, Trouble
from ardea.health.words import assessed, duration

TROUBLES = st.lists(st.builds(Trouble, st.text(max_size=3), st.none() | st.floats(0, 9), st.just("why"), st.booleans()))


@given(TROUBLES, st.booleans())
def test_the_word_is_that_of_the_worst_and_no_trouble_is_left_out(troubles, came_up):
    health = assessed(troubles, came_up=came_up)
    assert sorted(health.troubles, key=repr) == sorted(troubles, key=repr)
    assert [each.crashing for each in health.troubles] == sorted((t.crashing for t in troubles), reverse=True)
    if any(each.crashing for each in troubles):
        assert health.state == HealthState.CRASHING
    elif not came_up:
        assert health.state == HealthState.STARTING
    else:
        assert health.state == (HealthState.DEGRADED if troubles else HealthState.HEALTHY)


def test_a_trouble_is_told_with_its_time():
    health = Health(HealthState.DEGRADED, [Trouble("a-0", 10.0, "it is lost"), Trouble("b-0", None, "so is it")])
    assert health.lines(now=51.9) == ["a-0 since 41 s: it is lost", "b-0: so is it"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3.0, "0 s"), (119.9, "119 s"), (120.0, "2 min"), (7199.0, "119 min"), (7200.0, "2 h"), (172800.0, "2 d")],
)
def test_a_duration_is_short(seconds, said):
    assert duration(seconds) == said
