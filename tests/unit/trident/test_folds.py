"""Groups of a batch that comes in parts: the same as of all its rows at once, and no more rows wait than may."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.trident import CombinerAggregator, folds
from ardea.trident.folds import Aggregation, combining_fold, fold_of, grouped

FIELDS = ("kind", "size", "text")
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.text("xyz", min_size=1, max_size=2)))


class Joined(CombinerAggregator):
    """The order of the rows shows."""

    def init(self, tup):
        return tup["text"]

    def combine(self, left, right):
        return left + right

    def zero(self):
        return ""


@given(
    parts=st.lists(ROWS.filter(bool), max_size=12), group=st.sampled_from([(0,), (1,), (0, 1)]), most=st.integers(1, 9)
)
def test_groups_of_parts_are_those_of_the_whole_in_the_order_of_their_first_rows(parts, group, most):
    fold = grouped(fold_of([Aggregation(("text",), Joined(), ("joined",))], FIELDS), group)
    expected = {}
    for row in (row for part in parts for row in part):
        key = tuple(row[place] for place in group)
        expected[key] = expected.get(key, "") + row[2]
    out = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "GROUPED_AT_ONCE", most)
        value = fold.start(1, out)
        for part in parts:
            value = fold.step(value, part, out)
            assert len(value[1]) < most
        fold.end(value, out)
    assert [(*key, joined) for key, joined in expected.items()] == out


@given(parts=st.lists(ROWS.filter(bool), max_size=12), most=st.integers(1, 9))
def test_results_of_several_tasks_are_combined_in_the_order_in_which_they_come(parts, most):
    """A task says each group once; two may say the same."""
    fold = grouped(combining_fold([Aggregation(("text",), Joined(), ("joined",))], 2), (0, 1))
    expected = {}
    for kind, size, text in (row for part in parts for row in part):
        expected[kind, size] = expected.get((kind, size), "") + text
    out = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folds, "GROUPED_AT_ONCE", most)
        value = fold.start(1, out)
        for part in parts:
            value = fold.step(value, part, out)
        fold.end(value, out)
    assert [(*key, joined) for key, joined in expected.items()] == out
