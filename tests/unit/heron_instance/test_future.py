"""Rows that are ahead are divided from the others: none is lost, none is twice, each keeps its id and its order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.future import Future
from ardea.watermarks import SourceTime, StampCounts, Timestamps

FUTURE = Future(SourceTime(Timestamps("at", max_ahead=50.0), lambda: 100.0, StampCounts()), {"default": 1})
STAMPS = st.lists(st.sampled_from([1.0, 150.0, 151.0, 1e12]), min_size=1, max_size=12)


def name(stamp):
    return "future" if stamp > 150.0 else "default"


@given(STAMPS)
def test_runs_of_rows_are_all_of_them_in_their_order(stamps):
    rows = list(enumerate(stamps))
    found = [(stream, row) for stream, place in FUTURE.runs("default", rows) for row in rows[place]]
    assert found == [(name(at), (place, at)) for place, at in rows]
    assert [FUTURE.stream("default", row) for row in rows] == [name(at) for at in stamps]


@pytest.mark.parametrize("kind", ["none", "list", "array"])
def test_batches_have_all_rows_with_their_ids(kind):
    @given(STAMPS)
    def divided(stamps):
        batch = pa.record_batch({"n": list(range(len(stamps))), "at": stamps})
        ids = {"none": None, "list": [f"id-{n}" for n in range(len(stamps))], "array": np.arange(len(stamps)) + 7}[kind]
        found = []
        for stream, some, chosen in FUTURE.batches("default", batch, ids):
            own = [None] * some.num_rows if chosen is None else list(chosen)
            found += [(stream, *row.values(), tup_id) for row, tup_id in zip(some.to_pylist(), own, strict=True)]
        each = [None] * len(stamps) if ids is None else list(ids)
        expected = [(name(at), n, at, tup_id) for n, (at, tup_id) in enumerate(zip(stamps, each, strict=True))]
        assert sorted(found, key=lambda row: row[1]) == expected

    divided()


def test_streams_that_are_not_divided_stay_as_they_are():
    assert FUTURE.stream("other", (0, 1e12)) == "other"
    assert FUTURE.runs("other", [(0, 1e12)]) == [("other", slice(1))]
