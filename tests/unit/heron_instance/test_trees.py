"""A spout task's open trees, and the rows that wait to be sent again."""

import gc
import math
import weakref
from collections import deque

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ardea.errors import UserError
from ardea.heron_instance.trees import BACKOFF, OpenTrees, Replays, Row, TrackedColumns, Trees, ids_of
from ardea.protocol.ids import GENERATIONS, SLOTS, generations_of, slots_of, tasks_of
from tests.sizes import share

TASK = 9


def table(seed=0):
    return OpenTrees(TASK, np.random.default_rng(seed))


def places(roots):
    return list(zip(slots_of(roots).tolist(), generations_of(roots).tolist(), strict=True))


class TreesMachine(RuleBasedStateMachine):
    """Opens and closes in any order, with verdicts that come late or twice."""

    def __init__(self):
        super().__init__()
        self.trees = table()
        self.now = 0.0
        self.number = 0
        self.open = {}  # root -> (entry, size, opened)
        self.closed = []
        self.free = deque()  # slots in the order of their verdicts
        self.used = {}  # slot -> generation of its last tree
        self.seen = set()

    @rule(count=st.sampled_from([0, 1, 2, 3, 500, 1100]), size=st.integers(0, 100_000))
    def opens(self, count, size):
        entries = list(range(self.number, self.number + count))
        self.number += count
        rows = [[n] if n % 3 else Row(n, [n], "other", attempt=2) for n in entries]
        roots = self.trees.open(entries, rows, size, self.now)
        busy = {r >> 28 & (SLOTS - 1) for r in self.open}
        assert set(tasks_of(roots).tolist()) <= {TASK}
        for root, entry, (slot, generation) in zip(roots.tolist(), entries, places(roots), strict=True):
            assert root not in self.seen, "a root of an earlier tree"
            assert slot not in busy, "its verdict is not there yet"
            busy.add(slot)
            if slot in self.used:
                assert self.free.popleft() == slot, "oldest first"
                assert generation == (self.used[slot] + 1) % GENERATIONS
            self.used[slot] = generation
            self.seen.add(root)
            self.open[root] = (entry, size // count, self.now)

    @precondition(lambda self: self.open)
    @rule(
        data=st.data(), count=st.sampled_from([1, 2, 300]), late=st.booleans(), acked=st.booleans(), mixed=st.booleans()
    )
    def closes(self, data, count, late, acked, mixed):
        """A column of verdicts, among them some for trees that have theirs, and for slots never used."""
        offset = data.draw(st.integers(0, len(self.open) - 1))
        roots = [*self.open][offset : offset + count]
        if mixed:
            roots = roots[::2] + roots[1::2]
        column = roots + ([*self.closed[-3:], (TASK << 48) | ((SLOTS - 1) << 28)] if late else [])
        self.now += 1.0
        expected = [self.open[root][0] for root in roots]
        if acked:
            ids, seconds, _ = self.trees.complete(np.array(column, dtype=np.uint64), self.now)
            assert ids == expected
        else:
            rows, seconds, _ = self.trees.broken(np.array(column, dtype=np.uint64), self.now)
            assert rows == [Row(n, [n], "default") if n % 3 else Row(n, [n], "other", attempt=2) for n in expected]
        assert seconds.tolist() == [self.now - self.open[root][2] for root in roots]
        for root in roots:
            del self.open[root]
            self.free.append(root >> 28 & (SLOTS - 1))
        self.closed += roots

    @invariant()
    def counts_add_up(self):
        assert self.trees.pending == len(self.open)
        assert self.trees.pending_bytes == sum(size for _, size, _ in self.open.values())
        assert self.trees.room == SLOTS - len(self.open)
        assert self.trees.all_open().tolist() == sorted(self.open)


TreesMachine.TestCase.settings = settings(max_examples=share(40), stateful_step_count=25)
TestTrees = TreesMachine.TestCase


def opened(trees, count):
    """Roots of so many rows of no size."""
    return trees.open([None] * count, [()] * count, 0, 0.0)


def test_a_slot_is_used_again_after_all_that_were_free_before_it():
    """Oldest first: a late message has the longest time to arrive before its slot has another tree."""
    trees = table()
    first = opened(trees, 1)
    trees.complete(first, 1.0)
    others = opened(trees, 1023)
    assert int(slots_of(first)[0]) not in slots_of(others)
    again = opened(trees, 1)
    assert slots_of(again).tolist() == slots_of(first).tolist()
    assert generations_of(again).tolist() == [(int(generations_of(first)[0]) + 1) % GENERATIONS]


def test_generations_start_at_random_in_each_life():
    """A late verdict for a former life finds no tree of this one."""
    assert places(opened(table(1), 3)) != places(opened(table(2), 3))


def test_a_generation_wraps_to_zero():
    trees = table()
    opened(trees, 1024)
    trees._generation[:] = GENERATIONS - 1
    trees.complete(trees.all_open(), 0.0)
    assert set(generations_of(opened(trees, 1024)).tolist()) == {0}


@pytest.mark.parametrize("verdict", [OpenTrees.complete, OpenTrees.broken])
@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_a_closed_tree_lets_go_of_its_row(verdict, order):
    """Slots come again oldest first, so a table of small rows must not keep one large row in every slot."""

    class Values:
        pass

    trees, kept = table(), [Values(), Values(), Values()]
    alive = weakref.WeakSet(kept)
    roots = trees.open([*kept], [(value,) for value in kept], 10, 0.0)
    assert len(verdict(trees, roots[order], 1.0)[0]) == 3
    kept.clear()
    gc.collect()
    assert len(alive) == 0


def test_an_exhausted_table_names_both_limits_and_changes_nothing():
    """2^20 open trees are all there can be; the gate in front of next_tuple is another number."""
    trees = table()
    roots = opened(trees, SLOTS - 1)
    with pytest.raises(UserError) as caught:
        opened(trees, 2)
    for word in ("spout task 9", "1,048,575 open trees", "2 more", "1,048,576", "topology.max.spout.pending"):
        assert word in caught.value.message
    assert caught.value.hint
    assert trees.room == 1
    last = opened(trees, 1)
    assert len({*slots_of(roots).tolist(), *slots_of(last).tolist()}) == SLOTS
    trees.complete(roots[:2], 0.0)
    assert trees.room == 2
    opened(trees, 2)


def test_a_row_backs_off_each_time_it_fails():
    """At once, then 0.1 s up to 30 s; for each row by itself."""
    replays, row, now, waits = Replays(), Row(1, [1], "default"), 100.0, []
    for _ in range(12):
        replays.add(row, now)
        due = replays.next_due
        assert replays.take() is row
        waits.append(round(due - now, 6))
        now = due
    assert waits == [*BACKOFF, 30.0, 30.0]
    replays.add(Row(2, [2], "default"), now)
    assert replays.next_due == now


def test_rows_come_back_by_due_time_then_in_order():
    """The one due longest first, and equals as they were added."""
    replays = Replays()
    late, first, second = Row("late", [], "s", attempt=3), Row("first", [], "s"), Row("second", [], "s")
    replays.add(late, 0.0)
    replays.add(first, 0.25)
    replays.add(second, 0.25)
    assert len(replays) == 3
    assert [replays.take().tup_id for _ in range(3)] == ["first", "second", "late"]
    assert (len(replays), replays.next_due) == (0, math.inf)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=6), st.data())
def test_rows_of_batches_get_their_verdicts_among_single_rows(emitted, data):
    """In any order, in any portions; a batch goes with its last tree, and what broke of it is a batch again."""
    trees, expected, next_id = table(), {}, 0
    for columns, count in emitted:
        ids = range(next_id, next_id + count)
        next_id += count
        if columns:
            tracked = TrackedColumns(ids_of(ids), pa.record_batch({"n": pa.array(ids)}), "s")
            roots = trees.open_columns(tracked, np.arange(count, dtype=np.intp), 10 * count, 0.0)
        else:
            roots = trees.open(list(ids), [(n,) for n in ids], 10 * count, 0.0)
        expected.update(zip(roots.tolist(), ids, strict=True))
    assert trees.pending == next_id
    assert trees.pending_bytes == 10 * next_id
    order, found = data.draw(st.permutations(list(expected))), []
    while order:
        cut = data.draw(st.integers(1, len(order)))
        part, order = np.array(order[:cut], dtype=np.uint64), order[cut:]
        if data.draw(st.booleans()):
            ids, _, groups = trees.complete(part, 1.0)
            seen = [*ids, *(tup_id for each, _ in groups for tup_id in each.tolist())]
        else:
            rows, _, groups = trees.broken(part, 1.0)
            for each, seconds in groups:
                assert len(each) == len(seconds) == each.size / 10
                assert each.batch.column(0).to_pylist() == each.ids.tolist()
                assert [row.values for row in each.rows()] == [(n,) for n in each.ids.tolist()]
            seen = [*(row.tup_id for row in rows), *(tup_id for each, _ in groups for tup_id in each.ids.tolist())]
        assert sorted(seen) == sorted(expected[root] for root in part.tolist())
        found += seen
    assert sorted(found) == list(range(next_id))
    assert (trees.pending, trees.pending_bytes) == (0, 0)
    assert not trees._batches


def test_a_slot_of_a_batch_serves_a_single_row_next():
    """While another batch is open, too."""

    def a_batch(ids):
        tracked = TrackedColumns(ids_of(ids), pa.record_batch({"n": pa.array(ids)}), "s")
        return trees.open_columns(tracked, np.arange(len(ids), dtype=np.intp), 0, 0.0)

    trees = table()
    trees.complete(a_batch(range(1000)), 0.0)
    other = a_batch(range(10))
    rows = trees.open([*range(500)], [(n,) for n in range(500)], 0, 0.0)
    ids, _, groups = trees.complete(np.concatenate((rows, other[:5])), 0.0)
    assert ids == [*range(500)]
    assert [each.tolist() for each, _ in groups] == [[*range(5)]]


def test_rows_sent_together_wait_together():
    """They count as rows, and as their bytes."""
    replays = Replays()
    columns = TrackedColumns([1, None, "b"], pa.record_batch({"n": [1, 2, 3]}), "s", size=30)
    assert columns.tracked.tolist() == [0, 2]
    replays.add(columns, 0.0)
    replays.add(Row(7, (7,), "s", size=5), 0.0)
    assert (len(replays), replays.size) == (4, 35)
    assert replays.take() is columns
    assert (len(replays), replays.size, columns.attempt) == (1, 5, 1)


@pytest.mark.parametrize(
    ("given_ids", "kept"),
    [
        (range(3, 9, 2), np.array([3, 5, 7])),
        (np.array([1, 2], np.uint8), np.array([1, 2])),
        (pa.array([1, 2]), np.array([1, 2])),
        (range(2**64, 2**64 + 2), [2**64, 2**64 + 1]),
        (pa.array(["a", None]), ["a", None]),
        ([1, None], [1, None]),
        (("a", 1), ["a", 1]),
        (np.array([0.5]), [0.5]),
    ],
)
def test_ids_of_a_batch(given_ids, kept):
    found = ids_of(given_ids)
    assert type(found) is type(kept)
    assert not any(isinstance(each, pa.Scalar) for each in found)
    assert list(found) == list(kept)
    assert found is not given_ids


@pytest.mark.parametrize("picks", [[None, None], [None, [0, 1], None], [[0], None, None], [[0], [0, 2], None, [1]]])
def test_each_tree_begins_once(picks):
    """However many tasks get its row."""
    trees = Trees(np.array([7, 8, 9], dtype=np.uint64))
    begun = [trees.announce(None if rows is None else np.array(rows, dtype=np.intp)).tolist() for rows in picks]
    assert sorted(row for rows in begun for row in rows) == [0, 1, 2]
    assert trees.all_announced
