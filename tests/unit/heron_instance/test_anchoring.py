"""Whose row is whose: what runs say of plain emits agrees with a mark left at each."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ardea.heron_instance.anchoring import UNANCHORED, Anchoring
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.input_batch import InputBatch
from ardea.heron_instance.trees import Trees
from ardea.plan.logical import StreamPlan
from ardea.protocol.wire_pb2 import ONE, Header

PLAN = StreamPlan("default", ("word",))
INPUTS = 8
FIRST_ROOT = 100


def a_batch(first: int, inputs: int = INPUTS) -> InputBatch:
    """Tracked inputs, of roots from ``first`` on."""
    roots = np.arange(first, first + inputs, dtype=np.uint64)
    header = Header(ids=ONE, rows=inputs)
    return InputBatch(header, [b"", roots.tobytes(), roots.tobytes()], [("w",)] * inputs, "source", PLAN)


# What one call of process() does, and what happens behind it.
plain = st.tuples(st.just("plain"), st.integers(0, 5))
unanchored = st.tuples(st.just("unanchored"), st.just(1))
leaves = st.tuples(st.just("leaves"), st.just(0))  # a flush inside the call
refused = st.tuples(st.just("refused"), st.integers(0, 20))  # a flush in which a row cannot be sent
call = st.lists(st.one_of(plain, unanchored, leaves, refused), max_size=5)
batch_of_slices = st.lists(st.tuples(st.integers(1, INPUTS), st.booleans(), st.integers(0, 2)), max_size=3)


class Task:
    """A bolt's task as the executor drives its anchoring, beside the roots that its rows must have."""

    def __init__(self) -> None:
        self.anchoring = Anchoring(always_mixed=False)
        self.buffer = StreamBuffer(0, PLAN, [])
        self.batches: list[InputBatch] = []
        self.expected: list[int | None] = []
        self.edges = itertools.count(1)
        self.hung: dict[int, int] = {}

    def begin(self, inputs: int = INPUTS) -> None:
        """The next batch."""
        self.batches.append(a_batch(FIRST_ROOT * (len(self.batches) + 1), inputs))
        self.hung.update(dict.fromkeys(self.batches[-1].trees.roots.tolist(), 0))
        self.anchoring.begin(self.batches[-1], [self.buffer])

    def root(self, index: int) -> int:
        """Of an input of the present batch."""
        return int(self.batches[-1].trees.roots[index])

    def emit(self, root: int | None) -> None:
        self.buffer.rows.values.append(("w",))
        self.expected.append(root)

    def flush(self) -> None:
        if len(self.buffer):
            trees = self.anchoring.trees(self.buffer)
            known = [root for root in self.expected if root is not None]
            if trees is None:
                assert not known
            else:
                assert trees.roots.tolist() == known
                counts = [int(root is not None) for root in self.expected]
                assert (trees.counts.tolist() if trees.counts is not None else [1] * len(self.expected)) == counts
                self.hang(trees)
        self.buffer.clear()
        self.expected.clear()
        self.anchoring.restart(self.batches[-1], [self.buffer])

    def hang(self, trees: Trees) -> None:
        """A new edge for each row; some rows have none, as those that nobody reads."""
        edges = [0 if index % 5 == 4 else next(self.edges) for index in range(len(self.expected))]
        trees.xors = np.array(edges, dtype=np.uint64)
        self.anchoring.anchored(self.buffer, trees)
        for root, edge in zip(self.expected, edges, strict=True):
            if root is not None:
                self.hung[root] ^= edge
        found = {}
        for batch in self.batches:
            xors = [0] * len(batch.rows) if batch.xors is None else batch.xors.tolist()
            found.update(zip(batch.trees.roots.tolist(), xors, strict=True))
        assert found == self.hung

    def refuse(self, row: int) -> None:
        """One of the rows cannot be sent: it is taken out before the others leave."""
        owners = self.anchoring.take_out(self.buffer, row)
        root = self.expected.pop(row)
        assert [int(batch.trees.roots[index]) for batch, index in owners] == ([] if root is None else [root])
        self.buffer.rows.take_out([row], lambda _: None)


def play(task: Task, index: int, actions: list[tuple[str, int]]) -> None:
    for what, count in actions:
        if what == "plain":
            for _ in range(count):
                task.emit(task.root(index))
        elif what == "unanchored":
            task.anchoring.mark(task.buffer.rows)
            task.buffer.rows.marks.append(UNANCHORED)
            task.emit(None)
        elif len(task.buffer):
            if what == "refused":
                task.refuse(count % len(task.buffer))
            task.flush()


@given(st.lists(batch_of_slices, max_size=3), st.data())
def test_each_row_has_the_trees_of_its_input(batches: list[list[tuple[int, bool, int]]], data: Any) -> None:
    """Slices of batches, the last call of some raising; between them rows that belong to no input."""
    task = Task()
    for slices in batches:
        task.begin()
        at = 0
        for count, raises, outside in slices:
            end = min(INPUTS, at + count)
            if at == end:
                break
            run = task.anchoring.run(len(task.buffer), at)
            for index in range(at, end):
                play(task, index, data.draw(call))
                if not (raises and index == end - 1):
                    run.ends.append(len(task.buffer))
            task.anchoring.close(run, len(task.buffer))
            at = end
            for _ in range(outside):
                task.emit(None)
            if data.draw(st.booleans()) and len(task.buffer):
                task.flush()
    if len(task.buffer):
        task.flush()


def test_inputs_of_the_next_batch_that_have_emitted_nothing_count_for_none() -> None:
    """Although they seem to follow on those of the batch before: its rows leave inside the call of the fifth."""
    task = Task()
    task.begin(inputs=4)
    run = task.anchoring.run(0, 0)
    for index in range(4):
        task.emit(task.root(index))
        run.ends.append(len(task.buffer))
    task.anchoring.close(run, 4)
    task.begin()
    silent = task.anchoring.run(4, 0)
    silent.ends.extend([4] * 4)
    task.anchoring.close(silent, 4)
    task.anchoring.run(4, 4)
    task.flush()
