"""Which rows of one key belong together, whatever order they come in: against a look at all of them at once."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.backends.values import Packed
from ardea.joins import AsOfJoin, IntervalJoin, TableJoin, WindowJoin
from ardea.joins.kept import LEFT, MICROS, RIGHT, VALUES, seconds
from tests.sizes import share

BASE = 1_700_000_000 * MICROS
"""So late that the next double is a quarter of a microsecond away."""
STAMPS = st.integers(BASE, BASE + 12)
SIDES = ("l", "r")
HOWS = ("inner", "left", "right", "outer")


@st.composite
def arrivals(draw, *, removals=False):
    """[(side, stamp, name, watermark after it)]; no row is late."""
    lefts = draw(st.lists(STAMPS, max_size=6))
    rights = draw(st.lists(STAMPS, max_size=6, unique=removals))
    rows = [(LEFT, at, f"l{n}") for n, at in enumerate(lefts)]
    rows += [(RIGHT, at, None if removals and n % 3 == 2 else f"r{n}") for n, at in enumerate(rights)]
    rows = draw(st.permutations(rows))
    came, watermark = [], -math.inf
    for place, row in enumerate(rows):
        most = min((at for _, at, _ in rows[place + 1 :]), default=math.inf)
        if draw(st.booleans()) and most < math.inf:
            watermark = max(watermark, seconds(draw(st.integers(BASE, most))))
        came.append((*row, watermark))
    return came


def joined(join, came, look=lambda kept, watermark: None):
    """What it tells until the end of the input, sorted; what is kept goes through a file each time."""
    machine, kept, told = join.machine(), [[], []], []

    def until(watermark):
        nonlocal kept
        while (due := machine.due(kept)) <= watermark and due < math.inf:
            for left, right, at in machine.passed(kept, watermark):
                assert before < at <= watermark, "behind what was told, and not ahead of what is known"
                told.append((left, right))
        kept = Packed.of([kept]).unpacked()[0]
        look(kept, watermark)

    before = -math.inf
    for side, at, name, watermark in came:
        told += [(left, right) for left, right, _ in machine.came(kept, side, [at, False, name], before)]
        until(watermark)
        before = watermark
    until(math.inf)
    assert machine.due(kept) == math.inf
    return sorted(told, key=str), kept


def expected(came, fits, how):
    """All pairs, and all that are in none."""
    lefts = [(at, name) for side, at, name, _ in came if side == LEFT]
    rights = [(at, name) for side, at, name, _ in came if side == RIGHT]
    pairs = [(left, right) for at, left in lefts for other, right in rights if fits(at, other)]
    paired = {name for pair in pairs for name in pair}
    pairs += [(left, None) for _, left in lefts if how in ("left", "outer") and left not in paired]
    pairs += [(None, right) for _, right in rights if how in ("right", "outer") and right not in paired]
    return sorted(pairs, key=str)


@given(arrivals(), st.integers(0, 4), st.integers(0, 4), st.sampled_from(HOWS))
@settings(max_examples=share(250), deadline=None)
def test_an_interval_join_finds_all_pairs_and_all_that_are_alone_in_any_order(came, before, after, how):
    join = IntervalJoin(*SIDES, on="at", before=before / MICROS, after=after / MICROS, how=how)

    def look(kept, watermark):
        for rows, bound in zip(kept, (after, before), strict=True):
            assert all(seconds(at + bound + 1) > watermark for at, *_ in rows), "a row stays that nobody can belong to"

    told, kept = joined(join, came, look)
    assert told == expected(came, lambda left, right: left - before <= right <= left + after, how)
    assert kept == [[], []]


@given(arrivals(), st.integers(1, 5), st.integers(0, 6), st.sampled_from(HOWS))
@settings(max_examples=share(150), deadline=None)
def test_a_window_join_finds_all_pairs_of_a_window(came, size, offset, how):
    join = WindowJoin(*SIDES, on="at", size=size / MICROS, offset=offset / MICROS, how=how)
    told, kept = joined(join, came)
    assert told == expected(came, lambda left, right: (left - offset) // size == (right - offset) // size, how)
    assert kept == [[], []]


def last_of(came, within, how):
    """Each left row with the last right one up to its stamp."""
    rights = sorted((at, place, name) for place, (side, at, name, _) in enumerate(came) if side == RIGHT)
    told = []
    for side, at, left, _ in came:
        if side == LEFT:
            known = [(since, name) for since, _, name in rights if since <= at]
            since, right = known[-1] if known else (0, None)
            right = right if at - since <= within else None
            if right is not None or how == "left":
                told.append((left, right))
    return sorted(told, key=str)


def no_more_than_needed(kept, watermark):
    versions = kept[RIGHT]
    assert all(seconds(at + 1) > watermark for at, *_ in kept[LEFT])
    assert all(seconds(at + 1) > watermark for at, *_ in versions[1:]), "of former versions one is enough"
    if versions and versions[0][VALUES] is None:
        assert seconds(versions[0][0] + 1) > watermark, "what is gone says nothing"


@given(arrivals(removals=True), st.integers(0, 4), st.sampled_from(("inner", "left")))
@settings(max_examples=share(250), deadline=None)
def test_an_as_of_join_finds_the_last_right_row_in_any_order(came, within, how):
    join = AsOfJoin(*SIDES, on="at", within=within / MICROS, how=how)
    told, kept = joined(join, came, no_more_than_needed)
    assert told == last_of(came, within, how)
    assert kept == [[], []]


@given(arrivals(removals=True), st.sampled_from(("inner", "left")))
@settings(max_examples=share(150), deadline=None)
def test_a_table_with_stamps_is_as_it_was_at_each_row(came, how):
    told, kept = joined(TableJoin(*SIDES, on="at", how=how), came, no_more_than_needed)
    assert told == last_of(came, math.inf, how)
    assert len(kept[RIGHT]) <= 1


def test_a_version_stays_for_a_row_that_waits_whatever_the_watermark_is():
    machine, kept = TableJoin(*SIDES, on="at").machine(), [[], []]
    for side, at, name, now in (
        (RIGHT, 1, "r0", 0.0),
        (RIGHT, 9, "r1", 0.0),
        (LEFT, 5, "l", 0.0),
        (RIGHT, 30, "r2", 20.0),
    ):
        assert [*machine.came(kept, side, [at * MICROS, False, name], now)] == []
    assert [*machine.passed(kept, 20.0)] == [("l", "r0", 5.000001)]
    assert [row[VALUES] for row in kept[RIGHT]] == ["r1", "r2"]


@pytest.mark.parametrize("order", [["r0", "r1"], ["r1", "r0"]])
def test_of_two_versions_with_one_stamp_the_one_that_came_last_counts(order):
    came = [*((RIGHT, 5, name, -math.inf) for name in order), (LEFT, 5, "l", -math.inf)]
    assert joined(TableJoin(*SIDES, on="at"), came)[0] == [("l", order[1])]


def test_a_table_without_stamps_is_as_it_is_when_the_row_comes():
    rows = [(LEFT, "l0"), (RIGHT, "r0"), (LEFT, "l1"), (RIGHT, "r1"), (LEFT, "l2"), (RIGHT, None), (LEFT, "l3")]
    came = [(side, 0, name, -math.inf) for side, name in rows]
    assert joined(TableJoin(*SIDES), came) == ([("l1", "r0"), ("l2", "r1")], [[], []])
    assert joined(TableJoin(*SIDES, how="left"), came)[0] == [
        ("l0", None), ("l1", "r0"), ("l2", "r1"), ("l3", None),
    ]  # fmt: skip


def test_a_pair_has_the_later_stamp_and_one_alone_the_first_at_which_that_was_certain():
    machine = IntervalJoin(*SIDES, on="at", before=1, after=2, how="outer").machine()
    kept = [[], []]
    assert [*machine.came(kept, RIGHT, [3 * MICROS, False, "r"], 0.0)] == []
    assert [*machine.came(kept, LEFT, [2 * MICROS, False, "l"], 0.0)] == [("l", "r", 3.0)]
    assert [*machine.came(kept, LEFT, [9 * MICROS, False, "m"], 0.0)] == []
    assert [*machine.came(kept, RIGHT, [20 * MICROS, False, "s"], 0.0)] == []
    assert [*machine.passed(kept, 11.0)] == []
    assert [*machine.passed(kept, 30.0)] == [("m", None, 11.000001), (None, "s", 21.000001)]


def test_what_is_told_and_raises_is_not_kept():
    machine, kept = IntervalJoin(*SIDES, on="at", after=1).machine(), [[[0, False, "l"]], []]
    assert next(machine.came(kept, RIGHT, [1, False, "r"], 0.0)) == ("l", "r", 1e-06)
    assert kept == [[[0, False, "l"]], []]
