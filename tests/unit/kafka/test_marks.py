"""What is committed is never more than what is done, and becomes all of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ardea.errors import UserError
from ardea.kafka.marks import Marks, PartitionId, offsets_by_place, row_ids, to_commit

OFFSETS = st.lists(st.integers(0, 200), unique=True, max_size=60).map(sorted)


@st.composite
def histories(draw):
    """Records in chunks, and acks of some of those read so far, in any order, some twice and some of no record."""
    offsets = draw(OFFSETS)
    steps, left, read = [], list(offsets), []
    while left:
        size = draw(st.integers(1, len(left)))
        chunk, left = left[:size], left[size:]
        read += chunk
        steps.append(("read", chunk))
        steps.append(("done", draw(st.lists(st.sampled_from([*read, 999]), max_size=20))))
    return steps


@given(histories())
def test_the_low_mark_is_the_first_offset_that_is_not_done(steps):
    marks, read, done, lows = Marks(0), [], set(), []
    for kind, offsets in steps:
        if kind == "read":
            marks.read(offsets)
            read += offsets
        else:
            marks.done(offsets)
            done.update(offsets)
        behind = read[-1] + 1
        assert marks.low == min((o for o in read if o not in done), default=behind)
        assert marks.open == len(set(read) - done)
        assert marks.position == behind
        lows.append(marks.low)
    assert lows == sorted(lows)


@given(OFFSETS, st.randoms())
def test_all_done_in_any_order_commits_all(offsets, random):
    marks = Marks(0)
    if offsets:
        marks.read(offsets)
    marks.passed(500)
    random.shuffle(offsets)
    marks.done(offsets)
    assert (marks.low, marks.open) == (500, 0)


def test_what_was_read_is_not_committed_before_it_is_done_though_the_end_is_known():
    marks = Marks(3, end=10)
    marks.read([3, 5])
    marks.passed(10)
    assert (marks.exhausted, marks.low) == (True, 3)
    marks.done([3])
    assert marks.low == 5
    marks.passed(7)
    assert marks.position == 10


def test_only_what_changed_is_committed():
    one, two = PartitionId("t", 0), PartitionId("t", 1)
    marks = {one: Marks(4, committed=4), two: Marks(0)}
    assert to_commit(marks) == {two: 0}
    marks[one].read([4, 5])
    assert to_commit(marks) == {}
    marks[one].done([4])
    assert to_commit(marks) == {one: 5}
    assert to_commit(marks) == {}
    marks[one].committed = None
    assert to_commit(marks) == {one: 5}


@given(
    st.dictionaries(st.integers(0, 2**16 - 1), st.lists(st.integers(0, 2**47 - 1), min_size=1).map(sorted)),
    st.randoms(),
)
def test_ids_of_rows_say_which_offsets_of_which_partition_they_are(read, random):
    ids = [int(each) for number, offsets in read.items() for each in row_ids(number, np.array(offsets))]
    random.shuffle(ids)
    found = offsets_by_place(np.array(ids, dtype=np.int64))
    assert {number: offsets.tolist() for number, offsets in found.items()} == read


@pytest.mark.parametrize(("number", "offset"), [(2**16, 0), (0, 2**47)])
def test_what_does_not_fit_into_an_id_is_refused(number, offset):
    with pytest.raises(UserError, match="translate_batch"):
        row_ids(number, np.array([0, offset]))
