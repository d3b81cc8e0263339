"""Anchors of emitted batches: each row has one edge in each tree of its anchors, and no others."""

from __future__ import annotations

import gc
import weakref
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea.errors import UserError
from ardea.heron_instance.column_anchors import column_anchors_of, row_numbers
from ardea.heron_instance.input_batch import UNANCHORED, WHOLE_BATCH, ColumnInput
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows
from ardea.protocol.wire_pb2 import MANY, UNTRACKED, Header
from tests.sizes import share

PLAN = StreamPlan("default", ("n",))
ROOTS = st.integers(1, 6)  # few, so that anchors share them


def an_input(roots):
    """A batch whose row i belongs to the trees ``roots[i]``; what came has no edges, so that acks show the new ones."""
    counts = [len(set(each)) for each in roots]
    flat = np.array([root for each in roots for root in sorted(set(each))], dtype=np.uint64)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype("<u4")
    frames = [b"", offsets.tobytes(), flat.tobytes(), np.zeros(len(flat), dtype=np.uint64).tobytes()]
    rows = ColumnRows(pa.record_batch({"n": pa.array(range(len(roots)), pa.int64())}))
    return ColumnInput(Header(ids=MANY, rows=len(roots)), frames, rows, "source", PLAN)


def xor_by_root(batches):
    """What acking every row of all batches would send, by root."""
    sums: Counter[int] = Counter()
    for batch in batches:
        for root, value in zip(*(each.tolist() for each in batch.acks(None)), strict=True):
            sums[root] ^= value
    return {root: value for root, value in sums.items() if value}


inputs = st.lists(st.lists(ROOTS, max_size=3), min_size=1, max_size=6)


@settings(max_examples=share(300))
@given(st.lists(inputs, min_size=1, max_size=2), st.integers(1, 5), st.data())
def test_each_row_has_one_edge_in_each_tree(roots, total, data):
    batches = [an_input(each) for each in roots]
    anchors, expected = {}, [set() for _ in range(total)]
    for batch, each in zip(batches, roots, strict=True):
        place = st.integers(0, len(each) - 1)
        if data.draw(st.booleans()):
            numbers = data.draw(st.lists(place, min_size=total, max_size=total))
            lists = [[number] for number in numbers]
            anchors[batch.columns] = data.draw(st.sampled_from([numbers, np.array(numbers), pa.array(numbers)]))
        else:
            lists = data.draw(st.lists(st.lists(place, max_size=4), min_size=total, max_size=total))
            anchors[batch.columns] = pa.array(lists, pa.list_(pa.int64()))
        for row, chosen in enumerate(lists):
            expected[row].update(root for number in chosen for root in each[number])
    column_anchors = column_anchors_of(anchors, None, UNANCHORED, total, auto=True)
    good = np.flatnonzero(data.draw(st.lists(st.booleans(), min_size=total, max_size=total)))
    for found, of in ((column_anchors, list(range(total))), (column_anchors.picked(good), good.tolist())):
        trees = found.trees()
        wanted = [expected[row] for row in of]
        if trees is None:
            assert not any(wanted)
            continue
        counts = trees.counts.tolist() if trees.counts is not None else [1] * len(of)
        starts = np.cumsum([0, *counts])
        assert [set(trees.roots[s : s + c].tolist()) for s, c in zip(starts, counts, strict=False)] == wanted
        assert counts == [len(each) for each in wanted]
    named = {columns._batch for columns in anchors}
    assert [{batch for batch, _ in column_anchors.anchors_of(row)} <= named for row in range(total)] == [True] * total
    edges = np.array([1 << row for row in range(total)], dtype=np.uint64)
    column_anchors.hang(edges)
    sums: Counter[int] = Counter()
    for row, each in enumerate(expected):
        for root in each:
            sums[root] ^= 1 << row
    assert xor_by_root(batches) == {root: value for root, value in sums.items() if value}


def test_without_anchors_rows_follow_their_places():
    batch = an_input([[1], [2], [3]])
    assert column_anchors_of(None, batch, WHOLE_BATCH, 3, auto=True).trees().roots.tolist() == [1, 2, 3]
    assert column_anchors_of(None, batch, 1, 2, auto=True).trees().roots.tolist() == [2, 2]
    assert column_anchors_of(None, batch, WHOLE_BATCH, 3, auto=False) is None
    assert column_anchors_of(None, batch, UNANCHORED, 3, auto=True) is None
    assert column_anchors_of((), batch, WHOLE_BATCH, 3, auto=True) is None
    untracked = ColumnInput(Header(ids=UNTRACKED, rows=3), [b""], batch.rows, "source", PLAN)
    assert column_anchors_of(None, untracked, WHOLE_BATCH, 3, auto=True).trees() is None


def test_settled_rows_are_no_anchors():
    batch = an_input([[1], [2], [3]])
    batch.settled_rows.update(np.array([1]))
    assert column_anchors_of([0, 2], batch, WHOLE_BATCH, 2, auto=True) is not None
    for anchors in ([0, 1], pa.array([[0], [2, 1]]), {batch.columns: [1, 1]}):
        with pytest.raises(UserError, match="acked or failed already"):
            column_anchors_of(anchors, batch, WHOLE_BATCH, 2, auto=True)


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ([0, 3], "of a batch of 3"),
        ([-1], "from -1"),
        (np.array([True]), "integers"),
        (["a"], "integers"),
        ([0.5], "int"),
    ],
)
def test_row_numbers_are_numbers_of_rows(numbers, problem):
    with pytest.raises(UserError, match=problem):
        row_numbers(numbers, 3)


def test_the_rest_of_a_batch_keeps_its_trees():
    """Rows that are no columns are left out."""
    batch = an_input([[1, 2], [3], [], [1]])
    kept = batch.kept(np.array([0, 2, 3]))
    assert [kept.roots_of(np.array([row]))[0].tolist() for row in range(3)] == [[1, 2], [], [1]]
    assert kept.columns["n"].to_pylist() == [0, 2, 3]
    kept.anchor(np.array([0]), np.array([5], dtype=np.uint64))
    assert xor_by_root([kept]) == {1: 5, 2: 5}
    assert xor_by_root([batch]) == {}


def test_the_columns_of_a_batch_go_without_the_garbage_collector():
    rows = ColumnRows(pa.record_batch({"n": [1, 2]}))
    alive = weakref.ref(rows.batch)
    batch = ColumnInput(Header(ids=UNTRACKED, rows=2), [b""], rows, "source", PLAN)
    columns = batch.columns
    gc.disable()
    try:
        del rows, batch, columns
        assert alive() is None
    finally:
        gc.enable()
