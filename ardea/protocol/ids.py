"""Numbers that identify tuple trees, a column at a time.

A *root* is one u64 for a tuple tree, ``task << 48 | slot << 28 | generation``: the spout task that emitted it
(16 bits), its place in that task's table (20) and how often the place was used (28, never 0 in the ledger's
eyes: the generation starts at random in each life of an instance).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

U64: TypeAlias = NDArray[np.uint64]
U32: TypeAlias = NDArray[np.uint32]
Buffer: TypeAlias = bytes | memoryview

TASK_BITS, SLOT_BITS, GENERATION_BITS = 16, 20, 28
MAX_TASK = (1 << TASK_BITS) - 1
SLOTS = 1 << SLOT_BITS
GENERATIONS = 1 << GENERATION_BITS

_TASK_SHIFT = np.uint64(SLOT_BITS + GENERATION_BITS)
_SLOT_SHIFT = np.uint64(GENERATION_BITS)
_SLOT_MASK = np.uint64(SLOTS - 1)
_GENERATION_MASK = np.uint64(GENERATIONS - 1)

NO_IDS: U64 = np.empty(0, dtype=np.uint64)


def make_roots(task: int, slots: NDArray[Any], generations: NDArray[Any]) -> U64:
    """Roots of one task; ``slots`` and ``generations`` are integer arrays of one length."""
    high = np.uint64(task) << _TASK_SHIFT
    return high | (slots.astype(np.uint64) << _SLOT_SHIFT) | generations.astype(np.uint64)


def tasks_of(roots: U64) -> U64:
    """The spout task of each root."""
    return roots >> _TASK_SHIFT


def slots_of(roots: U64) -> NDArray[np.intp]:
    """The slot of each root, ready to index with."""
    return ((roots >> _SLOT_SHIFT) & _SLOT_MASK).astype(np.intp)


def generations_of(roots: U64) -> U32:
    """The generation of each root."""
    return (roots & _GENERATION_MASK).astype(np.uint32)


def column(buffer: Buffer) -> U64:
    """A u64 column of a message, without a copy (read-only)."""
    return np.frombuffer(buffer, dtype="<u8")


def offsets_column(buffer: Buffer) -> U32:
    """A u32 column of a message, without a copy (read-only)."""
    return np.frombuffer(buffer, dtype="<u4")


def fold(roots: U64, values: U64) -> tuple[U64, U64]:
    """One entry a root, its values XORed.

    Two entries of one root in one vector operation would lose one, so every column of (root, value) passes
    through here before it is applied or sent.  Columns already strictly ascending pass unchanged.
    """
    heads = np.flatnonzero(roots[1:] != roots[:-1]) + 1
    if len(heads) == max(0, len(roots) - 1) and bool((roots[1:] > roots[:-1]).all()):
        return roots, values
    first = np.concatenate(([0], heads))
    named = roots[first]
    if not bool((named[1:] > named[:-1]).all()):
        order = np.argsort(roots, kind="stable")
        roots, values = roots[order], values[order]
        first = np.concatenate(([0], np.flatnonzero(roots[1:] != roots[:-1]) + 1))
        named = roots[first]
    return named, np.bitwise_xor.reduceat(values, first)


def distinct(roots: U64) -> U64:
    """Each root once, ascending."""
    if len(roots) < 2 or bool((roots[1:] > roots[:-1]).all()):
        return roots
    return np.unique(roots)


def by_task(roots: U64) -> Iterator[tuple[int, slice]]:
    """(spout task, slice) for each task in *ascending* ``roots``."""
    if not len(roots):
        return
    tasks = tasks_of(roots)
    if tasks[0] == tasks[-1]:
        yield int(tasks[0]), slice(0, len(roots))
        return
    cuts = [0, *(np.flatnonzero(tasks[1:] != tasks[:-1]) + 1).tolist(), len(roots)]
    for start, end in pairwise(cuts):
        yield int(tasks[start]), slice(start, end)
