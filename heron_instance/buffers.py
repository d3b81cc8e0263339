"""What a task has emitted on a stream and not sent yet, and which tasks get which rows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from ardea.heron_instance.inlet import Int
from ardea.heron_instance.routing import Router
from ardea.plan.logical import StreamPlan
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows

Rows = list[Sequence[Any]]


@dataclass(slots=True)
class Consumer:
    """One component that reads the stream."""

    component: str
    router: Router | None  # None: direct
    targets: tuple[int, ...]


def repeats(picked: Int) -> bool:
    """Whether one of these rows, ascending, comes more than once: a custom grouping may name a task twice."""
    return bool((picked[1:] == picked[:-1]).any())


@dataclass(slots=True)
class StreamBuffer:
    """Rows of one stream since the last flush: single ones, or instead of them those of one record batch.

    ``marks`` say where each comes from (a spout's message id or a bolt's anchors), ``chosen`` the tasks picked at emit,
    ``parcels`` (task -> row numbers) those of the rows in ``parcelled``, which were emitted many at once.  ``origin``
    says of ``columns`` what marks say of rows: a spout's :class:`TrackedColumns` or a bolt's :class:`Joins`; None: no
    row has a tree.

    ``head`` are values in front of those of each row; ``rows`` lack them.
    """

    number: int
    plan: StreamPlan
    consumers: list[Consumer]
    rows: Rows = field(default_factory=list)
    head: tuple[Any, ...] = ()
    encoded_head: bytes = b""
    marks: list[Any] = field(default_factory=list)
    plain: bool = False  # what are_plain says of the rows
    columns: ColumnRows | None = None
    origin: Any = None
    chosen: dict[int, tuple[int, ...]] = field(default_factory=dict)
    parcels: dict[int, list[Int]] = field(default_factory=dict)
    parcelled: list[range] = field(default_factory=list)
    emitted: int = 0
    gone: int = 0  # of the rows, the first so many have left in the middle of a call of user code

    def __len__(self) -> int:
        return len(self.rows) - self.gone if self.columns is None else len(self.columns)

    def part(self, end: int) -> StreamBuffer:
        """A copy of what waits among the first ``end`` rows, to which emits may append meanwhile."""
        part = StreamBuffer(self.number, self.plan, self.consumers, self.rows[:end], marks=self.marks[:end])
        part.chosen, part.parcelled, part.gone = dict(self.chosen), list(self.parcelled), self.gone
        part.parcels = {task: list(rows) for task, rows in self.parcels.items()}
        part.cut()
        return part

    def left(self, rows: int, sent: int) -> None:
        """So many rows more have left in the middle of a call; ``sent``: those that could be sent."""
        self.gone += rows
        self.emitted += sent

    def cut(self) -> None:
        """The rows that have left wait no more."""
        gone, self.gone = self.gone, 0
        del self.rows[:gone], self.marks[:gone]
        self.chosen = {row - gone: tasks for row, tasks in self.chosen.items() if row >= gone}
        self.parcelled = [range(r.start - gone, r.stop - gone) for r in self.parcelled if r.start >= gone]
        for task, parts in list(self.parcels.items()):
            self.parcels[task] = [part - gone for part in parts if len(part) and part[0] >= gone]

    def clear(self) -> None:
        """After a flush."""
        self.emitted += len(self)
        self.rows.clear()
        self.marks.clear()
        self.chosen.clear()
        self.parcels.clear()
        self.parcelled.clear()
        self.columns = self.origin = None
        self.head, self.encoded_head = (), b""

    def unfold(self) -> None:
        """Each row holds all of its values again: others follow, without this head."""
        if self.head:
            self.rows[:] = HeadedRows(self.head, self.rows)
            self.head, self.encoded_head = (), b""

    @property
    def whole(self) -> Sequence[Sequence[Any]]:
        """The rows with all of their values."""
        if self.columns is not None:
            return self.columns
        return HeadedRows(self.head, self.rows) if self.head else self.rows

    def destinations(self) -> list[tuple[int, Int | None]]:
        """(task, rows) pairs in row order; None: all rows.

        Raises:
            EncodingError: a value cannot be part of a key.
        """
        out: list[tuple[int, Int | None]] = []
        rows = self.whole
        if not rows:
            return out
        places: Int | None = None
        if self.chosen or self.parcelled:
            out.extend(self._picked_at_emit())
            if len(self.chosen) + sum(map(len, self.parcelled)) == len(rows):
                return out
            known = {*self.chosen, *chain.from_iterable(self.parcelled)}
            kept = [i for i in range(len(rows)) if i not in known]
            rows, places = [rows[i] for i in kept], np.array(kept, dtype=np.intp)
        for consumer in self.consumers:
            if consumer.router is None:
                continue
            if consumer.router.fixed is not None:
                out.append((consumer.targets[consumer.router.fixed], places))
                continue
            for place, picked in consumer.router.shares(rows):
                out.append((consumer.targets[place], picked if places is None else places[picked]))
        return out

    def _picked_at_emit(self) -> Iterator[tuple[int, Int | None]]:
        """(task, rows) of the rows whose tasks are known since they were emitted; None: all rows."""
        by_task = {task: list(parts) for task, parts in self.parcels.items()}
        for row, tasks in self.chosen.items():
            for task in tasks:
                by_task.setdefault(task, []).append(np.array([row], dtype=np.intp))
        for task, parts in by_task.items():
            picked = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            yield task, None if len(picked) == len(self.rows) and not repeats(picked) else picked

    def without_rows(self, bad: Sequence[int]) -> None:
        """Takes out rows, by their places, descending."""
        if self.columns is not None:
            good = np.delete(np.arange(len(self.columns), dtype=np.intp), list(bad))
            self.columns = ColumnRows(self.columns.batch.take(good))
            self.origin = None if self.origin is None else self.origin.picked(good)
            return
        for place in bad:
            del self.rows[place], self.marks[place]
            self.chosen = {row - (row > place): tasks for row, tasks in self.chosen.items() if row != place}
            self.parcelled = [range(r.start - (r.start > place), r.stop - (r.stop > place)) for r in self.parcelled]
            for parts in self.parcels.values():
                parts[:] = [part[part != place] - (part[part != place] > place) for part in parts]


def only_buffer(buffers: Mapping[str, StreamBuffer]) -> StreamBuffer | None:
    """The buffer whose rows an emit may append to directly: the only stream's, if it is a plain default."""
    first = next(iter(buffers.values()), None)
    plain = first is not None and len(buffers) == 1 and first.plan.name == "default" and not first.plan.direct
    return first if plain else None
