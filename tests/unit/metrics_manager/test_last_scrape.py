"""How long the pod of a master stays, so that whoever scrapes it sees how its topology ended."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.metrics_manager.last_scrape import FIRST_SCRAPE, MOST, LastScrape, Scrapers
from ardea.state.records import RunState

PATIENCE = 75.0
LOOKS_EVERY = 0.5


class Stay:
    """One metrics manager after the end, which was told at ``told``; it began at 0."""

    def __init__(self, told: float, state: RunState | None = RunState.KILLED) -> None:
        self.scrapers, self.told = Scrapers(), told
        self.last = LastScrape(
            self.scrapers, lambda: state, lambda now: now >= told + 5.0, patience=PATIENCE, begun=0.0
        )

    def leaves(self, coming: list[tuple[float, str]]) -> float:
        """When it leaves, if these come, each at its time."""
        now, coming = self.told, sorted(coming)
        for moment, who in [scrape for scrape in coming if scrape[0] < self.told]:
            self.scrapers.answered(who, moment)
        left = [scrape for scrape in coming if scrape[0] >= self.told]
        while not self.last.are_here(now):
            now += LOOKS_EVERY
            while left and left[0][0] <= now:
                moment, who = left.pop(0)
                self.scrapers.answered(who, moment)
        return now


@given(
    told=st.floats(61, 4000),
    servers=st.lists(st.tuples(st.floats(1, 60), st.floats(0, 1)), min_size=1, max_size=3),
)
def test_it_leaves_as_soon_as_everybody_who_scrapes_each_minute_or_more_often_has_come(told, servers):
    scrapes, next_ones = [], []
    for number, (interval, phase) in enumerate(servers):
        times = [(round_ + phase) * interval for round_ in range(int((told + PATIENCE) / interval) + 2)]
        scrapes += [(moment, f"10.0.0.{number}") for moment in times]
        next_ones.append(min(moment for moment in times if moment >= told))
    left = Stay(told).leaves(scrapes)
    assert max(next_ones) <= left <= max(next_ones) + LOOKS_EVERY


@given(coming=st.lists(st.tuples(st.floats(0, 4000), st.sampled_from("abc"))), told=st.floats(0, 4000))
def test_it_never_stays_longer_than_it_may(coming, told):
    for state in (RunState.SUCCEEDED, RunState.FAILED, RunState.KILLED):
        assert Stay(told, state).leaves(coming) <= told + PATIENCE + LOOKS_EVERY


@pytest.mark.parametrize("state", [RunState.SUCCEEDED, RunState.KILLED])
def test_where_nobody_scrapes_it_waits_for_nobody(state):
    assert Stay(5.0, state).leaves([]) == 5.0


def test_a_failure_waits_for_the_first_scrape_and_not_where_that_would_have_come():
    assert FIRST_SCRAPE <= Stay(5.0, RunState.FAILED).leaves([]) <= FIRST_SCRAPE + LOOKS_EVERY
    assert Stay(5.0, RunState.FAILED).leaves([(12.0, "a")]) == pytest.approx(12.0, abs=LOOKS_EVERY)
    assert Stay(FIRST_SCRAPE, RunState.FAILED).leaves([]) == FIRST_SCRAPE


def test_one_that_has_stayed_away_is_not_waited_for():
    assert Stay(1000.0).leaves([(800.0, "somebody who looked once"), (995.0, "a"), (1010.0, "a")]) == 1010.0


def test_a_crowd_that_comes_once_is_forgotten_and_who_comes_again_is_not():
    scrapers = Scrapers()
    scrapers.answered("prometheus", 0.0)
    for number in range(10_000):
        scrapers.answered(f"10.0.{number}", number / 1000)
        if number % 50 == 0:
            scrapers.answered("prometheus", number / 1000)
    for number in range(MOST):
        scrapers.answered(f"10.0.{9_999 - number}", 20.0)
    scrapers.answered("prometheus", 20.0)
    assert scrapers.come_after(20.0) is True
    assert len(scrapers._newest) == MOST


def test_until_its_master_has_told_an_end_it_does_as_those_of_other_containers():
    assert Stay(10.0, state=None).leaves([(9.0, "a")]) == 15.0
