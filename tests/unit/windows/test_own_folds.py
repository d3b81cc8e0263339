"""Folds of an author's own that change their value in place: what was seen of a window stays as it was."""

from __future__ import annotations

import copy
import math

import pytest

from ardea.windows import Fold, Folds, Global, Session, Sliding, Tumbling
from tests.unit.windows.test_open_windows import Driven


class InPlace(Fold):
    """Of an author whose values are lists that grow."""

    def zero(self):
        return []

    def add(self, value, row):
        value.append(row)
        return value

    def merge(self, a, b):
        return a + b


@pytest.mark.parametrize("kind", [Global(rows=2), Global(rows=2, fold=InPlace())], ids=["rows", "own"])
def test_a_global_window_that_is_seen_within_a_batch_has_the_rows_up_to_there(kind):
    driven = Driven(kind)
    driven.add([("a", 0, number) for number in range(5)])
    driven.end()
    assert [(firing, rows) for _, _, _, firing, rows in driven.seen] == [
        ("early", [0, 1]),
        ("early", [0, 1, 2, 3]),
        ("on time", [0, 1, 2, 3, 4]),
    ]


@pytest.mark.parametrize(
    "kind",
    [
        Tumbling(10, on="at", fold=InPlace(), allowed_lateness=10),
        Sliding(10, 5, on="at", fold=InPlace(), allowed_lateness=10),
        Session(10, on="at", fold=InPlace(), allowed_lateness=10),
        Session(10, on="at", fold=InPlace()),
        Global(early=1, fold=InPlace()),
    ],
    ids=lambda kind: type(kind).__name__,
)
def test_what_was_seen_of_a_window_stays_whatever_rows_come_later(kind):
    driven, kept = Driven(kind), []
    driven._note = lambda found: kept.extend((seen.values, copy.deepcopy(seen.values)) for seen in found)
    for stamp, number in ((5, 0), (6, 1)):
        driven.add([("a", stamp, number)])
        driven._note(driven.open.early([*driven.open.open(-math.inf)]))
    driven.rise(16)
    driven.settle()
    for number in (2, 3):
        driven.add([("a", 6, number)])
    driven.end()
    assert len(kept) >= 3
    assert all(values == as_seen for values, as_seen in kept)


class LongerFirst(InPlace):
    """Adds to the longer of two values, and gives that one back."""

    def merge(self, a, b):
        if len(b) > len(a):
            return b
        a.extend(b)
        return a


class OfOne(Folds):
    def result(self, value):
        """As that of a fold by itself, which gets the rows."""
        return [(number,) for number in super().result(value)["rows"]]


@pytest.mark.parametrize("fold", [LongerFirst(), OfOne(rows=LongerFirst())], ids=["alone", "in Folds"])
def test_a_pane_that_merge_gives_back_is_not_changed_by_the_next_one(fold):
    driven = Driven(Sliding(15, 5, on="at", fold=fold))
    driven.add([("a", stamp, number) for number, stamp in enumerate([1, 6, 7, 11])])
    driven.rise(25)
    driven.settle()
    driven.end()
    assert [rows for _, _, _, _, rows in driven.seen] == [[0], [1, 2], [1, 2, 3], [1, 2, 3], [3]]
