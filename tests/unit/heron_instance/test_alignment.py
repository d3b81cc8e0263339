"""What is set aside while a task aligns, when it is aligned, and in what order everything is processed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.alignment import Aligned, Alignment


def everything(alignment):
    said = []
    while (thing := alignment.next()) is not None:
        said.append(thing)
    return said


@pytest.fixture
def two():
    return Alignment({1, 2})


def test_what_comes_after_a_barrier_waits_for_the_other_one(two):
    two.put(1, "a")
    two.put(1, "|", barrier=5)
    two.put(1, "after", size=7)
    two.put(2, "before")
    assert everything(two) == ["a", "before"]
    assert (two.number, two.bytes_aside) == (5, 7)
    two.put(2, "|", barrier=5)
    assert everything(two) == [Aligned(5), "after"]
    assert (two.number, two.bytes_aside, two.idle) == (0, 0, True)


def test_one_task_upstream_is_aligned_at_once():
    alignment = Alignment({1})
    alignment.put(1, "|", barrier=5)
    alignment.put(1, "after")
    assert everything(alignment) == [Aligned(5), "after"]


def test_a_barrier_that_comes_twice_counts_once(two):
    two.put(1, "|", barrier=5)
    two.put(1, "|", barrier=5)
    two.put(1, "after")
    two.put(2, "|", barrier=5)
    assert everything(two) == [Aligned(5), "after"]


def test_a_task_that_has_ended_owes_no_barrier(two):
    two.put(1, "|", barrier=5)
    two.put(1, "after")
    assert everything(two) == []
    two.ended(2)
    assert not two.idle
    assert everything(two) == [Aligned(5), "after"]


@pytest.mark.parametrize("aligned_first", [True, False])
def test_a_higher_barrier_ends_the_alignment_of_a_lower_one(two, aligned_first):
    """Whether it comes of the task whose barrier is here, or of the other one."""
    two.put(1, "|", barrier=5)
    two.put(1, "a")
    ways = [(1, "a2"), (2, "b")]
    for source, after in ways if aligned_first else reversed(ways):
        two.put(source, "|", barrier=6)
        two.put(source, after)
    said = everything(two)
    assert said[:2] == ["a", Aligned(6)]
    assert sorted(said[2:]) == ["a2", "b"]


def test_a_barrier_of_what_was_abandoned_says_nothing(two):
    two.put(1, "|", barrier=5)
    two.put(1, "after")
    assert everything(two) == []
    two.abandoned(5)
    two.put(2, "|", barrier=5)
    two.put(2, "b")
    assert everything(two) == ["after", "b"]
    assert two.number == 0


def test_an_abandonment_of_a_lower_one_changes_nothing(two):
    two.put(1, "|", barrier=6)
    two.put(1, "after")
    assert everything(two) == []
    two.abandoned(5)
    assert everything(two) == []
    two.put(2, "|", barrier=6)
    assert everything(two) == [Aligned(6), "after"]


def test_a_lower_barrier_that_comes_late_ends_nothing(two):
    two.put(1, "|", barrier=6)
    two.put(2, "|", barrier=5)
    two.put(2, "b")
    assert everything(two) == ["b"]
    assert two.number == 6


def streams():
    """What each task upstream sends: rows, barriers that rise, and some that are left out."""
    step = st.one_of(st.just("row"), st.just("barrier"), st.just("skipped"))
    return st.lists(st.lists(step, max_size=12), min_size=1, max_size=4)


@given(streams(), st.data())
def test_each_stream_keeps_its_order_and_a_cut_is_a_cut(plans, data):
    """Nothing is lost or set aside twice; what was processed at an alignment is what came before the barriers."""
    sent = {}
    for source, plan in enumerate(plans):
        number, out = 0, []
        for place, step in enumerate(plan):
            number += step != "row"
            if step != "skipped":
                out.append((source, place, number if step == "barrier" else 0))
        sent[source] = out
    aside = Counter()

    def put_aside(item):
        aside[item] += 1
        return item

    alignment, left, done, cuts = Alignment(sent, put_aside), {s: list(o) for s, o in sent.items()}, [], []
    while any(left.values()):
        source = data.draw(st.sampled_from([s for s, out in left.items() if out]))
        item = left[source].pop(0)
        alignment.put(source, item, barrier=item[2])
        for thing in everything(alignment):
            if isinstance(thing, Aligned):
                cuts.append((thing.number, list(done)))
            else:
                done.append(thing)
    assert max(aside.values(), default=0) <= 1
    for source, out in sent.items():
        rows = [item for item in out if not item[2]]
        mine = [item for item in done if item[0] == source]
        assert mine == rows[: len(mine)]
        if not alignment.number:
            assert mine == rows
    for number, processed in cuts:
        before = [i for out in sent.values() for i in out[: out.index(next(b for b in out if b[2] == number))]]
        assert Counter(processed) == Counter(item for item in before if not item[2])
    assert [number for number, _ in cuts] == sorted({number for number, _ in cuts})
