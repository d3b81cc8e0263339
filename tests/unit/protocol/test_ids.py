"""Roots, incarnations, and columns of both."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ardea.protocol.ids import (
    GENERATIONS,
    MAX_TASK,
    SLOTS,
    by_task,
    column,
    distinct,
    fold,
    generations_of,
    make_roots,
    offsets_column,
    slots_of,
    tasks_of,
)
from ardea.protocol.incarnations import admission_of, describe, incarnation, life_of

u32 = st.integers(1, 2**32 - 1)
few_roots = st.sampled_from([0, 1, 2, 5, 1 << 28, 1 << 48, (1 << 48) + 1, 3 << 48, (1 << 64) - 1])
values = st.integers(0, 2**64 - 1)


def u64(numbers):
    return np.array(list(numbers), dtype=np.uint64)


@given(u32, u32, u32, u32)
def test_incarnations_compare_as_admission_then_life(a, b, c, d):
    """One number orders as the pair does, and gives both back."""
    assert (incarnation(a, b) < incarnation(c, d)) == ((a, b) < (c, d))
    assert (admission_of(incarnation(a, b)), life_of(incarnation(a, b))) == (a, b)


def test_an_incarnation_reads_well():
    assert describe(incarnation(2, 5)) == "admission 2, life 5"
    assert describe(0) == "unknown"


@given(
    st.integers(0, MAX_TASK),
    st.lists(st.tuples(st.integers(0, SLOTS - 1), st.integers(0, GENERATIONS - 1)), max_size=20),
)
def test_a_root_gives_back_task_slot_and_generation(task, places):
    """16, 20 and 28 bits, none of which touches another."""
    roots = make_roots(task, np.array([p[0] for p in places], dtype=int), np.array([p[1] for p in places], dtype=int))
    assert roots.dtype == np.uint64
    assert tasks_of(roots).tolist() == [task] * len(places)
    assert list(zip(slots_of(roots).tolist(), generations_of(roots).tolist(), strict=True)) == places
    assert roots.tolist() == [task << 48 | slot << 28 | generation for slot, generation in places]


@given(st.lists(st.tuples(few_roots, values), max_size=30))
def test_fold_leaves_one_entry_a_root(entries):
    """Ascending, each root once, with the XOR of all its values."""
    expected: dict[int, int] = {}
    for root, value in entries:
        expected[root] = expected.get(root, 0) ^ value
    roots, xors = fold(u64(r for r, _ in entries), u64(v for _, v in entries))
    assert list(zip(roots.tolist(), xors.tolist(), strict=True)) == sorted(expected.items())


@given(st.lists(few_roots, max_size=30))
def test_distinct_is_the_sorted_set(roots):
    assert distinct(u64(roots)).tolist() == sorted(set(roots))


@given(st.lists(few_roots, max_size=30))
def test_by_task_cuts_at_each_task(roots):
    """The slices cover the column, one for each task, ascending."""
    ascending = distinct(u64(roots))
    parts = [(task, ascending[part].tolist()) for task, part in by_task(ascending)]
    assert [root for _, part in parts for root in part] == ascending.tolist()
    assert all(root >> 48 == task for task, part in parts for root in part)
    assert all(count == 1 for count in Counter(task for task, _ in parts).values())


def test_columns_are_little_endian_and_not_copied():
    """What protocol.md says of the bytes."""
    assert column(b"\x01" + bytes(7) + b"\x00\x01" + bytes(6)).tolist() == [1, 256]
    assert offsets_column(b"\x02\x00\x00\x00").tolist() == [2]
    assert not column(bytes(8)).flags.writeable
