"""Whose row is whose: what runs say of plain emits agrees with a mark left at each."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ardea.plan.logical import StreamPlan
from ardea.protocol.wire_pb2 import ONE, Header
from heron_instance.anchoring import UNANCHORED, Anchoring
from heron_instance.buffers import StreamBuffer
from heron_instance.inlet import InputBatch

PLAN = StreamPlan("default", ("word",))
INPUTS = 8
FIRST_ROOT = 100


def a_batch() -> InputBatch:
    """Eight tracked inputs, of the roots 100 to 107."""
    roots = np.arange(FIRST_ROOT, FIRST_ROOT + INPUTS, dtype=np.uint64)
    header = Header(ids=ONE, rows=INPUTS)
    return InputBatch(header, [b"", roots.tobytes(), roots.tobytes()], [("w",)] * INPUTS, "source", PLAN)


# What one call of process() does, and what happens behind it.
plain = st.tuples(st.just("plain"), st.integers(0, 5))
unanchored = st.tuples(st.just("unanchored"), st.just(1))
leaves = st.tuples(st.just("leaves"), st.just(0))  # a flush inside the call
call = st.lists(st.one_of(plain, unanchored, leaves), max_size=5)


class Task:
    """A bolt's task as the executor drives its anchoring, beside the roots that its rows must have."""

    def __init__(self) -> None:
        self.anchoring = Anchoring(always_mixed=False)
        self.buffer = StreamBuffer(0, PLAN, [])
        self.batch = a_batch()
        self.expected: list[int | None] = []
        self.anchoring.begin(self.batch, [self.buffer])

    def emit(self, root: int | None) -> None:
        self.buffer.rows.append(("w",))
        self.expected.append(root)

    def flush(self) -> None:
        trees = self.anchoring.trees(self.buffer)
        known = [root for root in self.expected if root is not None]
        if trees is None:
            assert not known
        else:
            assert trees.roots.tolist() == known
            counts = [int(root is not None) for root in self.expected]
            assert (trees.counts.tolist() if trees.counts is not None else [1] * len(self.expected)) == counts
        self.buffer.clear()
        self.expected.clear()
        self.anchoring.restart(self.batch, [self.buffer])


def play(task: Task, index: int, actions: list[tuple[str, int]]) -> None:
    for what, count in actions:
        if what == "plain":
            for _ in range(count):
                task.emit(FIRST_ROOT + index)
        elif what == "unanchored":
            task.anchoring.mark(task.buffer)
            task.buffer.marks.append(UNANCHORED)
            task.emit(None)
        elif task.buffer.rows:
            task.flush()


@given(st.lists(st.tuples(st.integers(1, INPUTS), st.booleans(), st.integers(0, 2)), max_size=4), st.data())
def test_each_row_has_the_trees_of_its_input(slices: list[tuple[int, bool, int]], data: Any) -> None:
    """Slices of a batch, the last call of some raising; between them rows that belong to no input."""
    task, at = Task(), 0
    for count, raises, outside in slices:
        end = min(INPUTS, at + count)
        if at == end:
            break
        run = task.anchoring.run(len(task.buffer.rows), at)
        for index in range(at, end):
            play(task, index, data.draw(call))
            if not (raises and index == end - 1):
                run.ends.append(len(task.buffer.rows))
        task.anchoring.close(run, len(task.buffer.rows))
        at = end
        for _ in range(outside):
            task.emit(None)
        if data.draw(st.booleans()) and task.buffer.rows:
            task.flush()
    if task.buffer.rows:
        task.flush()
