"""Rows of one stream that wait to be sent: single ones, or those of one record batch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ardea.errors import EncodingError
from ardea.heron_instance.input_batch import Int
from ardea.heron_instance.routing import Router
from ardea.heron_instance.sendable import Sendable, well_formed
from ardea.heron_instance.trees import plain
from ardea.protocol.arrow import encode_batch
from ardea.protocol.column_types import part_without_dictionaries
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows
from ardea.protocol.values import RowCodec, are_plain
from ardea.protocol.wire_pb2 import ARROW, Header

if TYPE_CHECKING:
    import pyarrow as pa

Destinations = list[tuple[int, Int | None]]
"""(task, rows) pairs in row order; None: all rows."""


@dataclass(slots=True)
class Consumer:
    """One component that reads the stream."""

    component: str
    router: Router | None  # None: direct
    targets: tuple[int, ...]


class Parcel(Protocol):
    """What waits; ``picked`` are numbers of its rows, ascending (None: all)."""

    def __len__(self) -> int: ...

    @property
    def whole(self) -> Sequence[Sequence[Any]]:
        """The rows with all of their values."""

    def well_formed(self, fields: int) -> bool:
        """Whether each row has so many values; asked once ahead of a flush."""

    def destinations(self, consumers: Sequence[Consumer]) -> Destinations:
        """Which task gets which rows; raises EncodingError: a value cannot be part of a key."""

    def encode(self, picked: Int | None, codec: RowCodec) -> bytes:
        """Some rows; raises EncodingError."""

    def describe(self, header: Header) -> None:
        """How they are encoded."""

    def faults(self, sendable: Sendable) -> Iterable[EncodingError | None]:
        """What keeps each row from being sent; None: nothing."""

    def take_out(self, bad: Sequence[int], refused: Callable[[int], None]) -> None:
        """These rows, descending, are not sent; ``refused`` hears of each while its origin is still known."""

    def take_ids(self) -> list[Any]:
        """The ids of a spout's rows, which have none from now on."""


@dataclass(slots=True)
class Picked:
    """Rows whose tasks are known since they were emitted.

    ``single``: row -> tasks.  ``many``: task -> row numbers, of the rows in ``ranges``, which were emitted together.
    """

    single: dict[int, tuple[int, ...]] = field(default_factory=dict)
    many: dict[int, list[Int]] = field(default_factory=dict)
    ranges: list[range] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.single or self.ranges)

    def copy(self) -> Picked:
        """Of its own."""
        return Picked(dict(self.single), {task: list(rows) for task, rows in self.many.items()}, list(self.ranges))

    def clear(self) -> None:
        """There are none."""
        self.single.clear()
        self.many.clear()
        self.ranges.clear()

    def cut(self, gone: int) -> None:
        """The first rows have left."""
        self.single = {row - gone: tasks for row, tasks in self.single.items() if row >= gone}
        self.ranges = [range(r.start - gone, r.stop - gone) for r in self.ranges if r.start >= gone]
        left = {task: [p - gone for p in parts if len(p) and p[0] >= gone] for task, parts in self.many.items()}
        self.many = {task: parts for task, parts in left.items() if parts}

    def take_out(self, place: int) -> None:
        """One row is gone."""
        self.single = {row - (row > place): tasks for row, tasks in self.single.items() if row != place}
        self.ranges = [range(r.start - (r.start > place), r.stop - (r.stop > place)) for r in self.ranges]
        for parts in self.many.values():
            parts[:] = [part[part != place] - (part[part != place] > place) for part in parts]

    def others(self, total: int) -> list[int]:
        """Those of so many rows that are not among them."""
        if len(self.single) + sum(map(len, self.ranges)) == total:
            return []
        known = {*self.single, *chain.from_iterable(self.ranges)}
        return [row for row in range(total) if row not in known]

    def destinations(self, total: int) -> Iterator[tuple[int, Int | None]]:
        """Which task gets which of so many rows."""
        by_task = {task: list(parts) for task, parts in self.many.items()}
        for row, tasks in self.single.items():
            for task in tasks:
                by_task.setdefault(task, []).append(np.array([row], dtype=np.intp))
        for task, parts in by_task.items():
            picked = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            if len(picked):
                yield task, None if len(picked) == total and not repeats(picked) else picked


OPEN = sys.maxsize
"""Where the rows of a call end that goes on."""
Call = list[int]
"""Rows that one call has emitted: from which row, to which, and the place of the first in the call."""


@dataclass(slots=True)
class RowParcel:
    """Single rows.

    ``marks`` say where each comes from (a spout's message id or a bolt's anchors).  ``head`` are values in front of
    those of each row; ``values`` lack them.  The first ``gone`` rows have left in the middle of a call of user code.
    ``calls`` that emitted many are those since the last of the ``flushes``.
    """

    values: list[Sequence[Any]] = field(default_factory=list)
    marks: list[Any] = field(default_factory=list)
    picked: Picked = field(default_factory=Picked)
    head: tuple[Any, ...] = ()
    encoded_head: bytes = b""
    plain: bool = False  # what are_plain says of the rows
    gone: int = 0
    calls: list[Call] = field(default_factory=list)
    flushes: int = 0

    def __len__(self) -> int:
        return len(self.values) - self.gone

    def call(self, first: int) -> Call:
        """One emits rows from now on, of which the next has the place ``first`` in it."""
        call = [len(self.values), OPEN, first]
        self.calls.append(call)
        return call

    def called(self, call: Call) -> None:
        """It emits no more."""
        call[1] = end = len(self.values)
        if call[0] == end and self.calls and self.calls[-1] is call:
            self.calls.pop()  # without a flush, they would pile up

    def place_of(self, row: int) -> int | None:
        """In the call that emitted many rows, and this one among them."""
        return next((first + row - start for start, end, first in reversed(self.calls) if start <= row < end), None)

    def part(self, end: int) -> RowParcel:
        """A copy of what waits among the first ``end`` rows, to which emits may append meanwhile."""
        part = RowParcel(self.values[:end], self.marks[:end], self.picked.copy(), gone=self.gone)
        part.calls = [list(call) for call in self.calls]
        part.cut()
        return part

    def cut(self) -> None:
        """The rows that have left wait no more."""
        gone, self.gone = self.gone, 0
        del self.values[:gone], self.marks[:gone]
        self.picked.cut(gone)
        for call in self.calls:  # in place: one that is open goes on
            call[0] -= gone
            call[1] -= gone if call[1] < OPEN else 0
        self.calls[:] = [call for call in self.calls if call[1] > 0]

    def clear(self) -> None:
        """Nothing waits."""
        self.values.clear()
        self.marks.clear()
        self.picked.clear()
        self.calls.clear()
        self.flushes += 1
        self.head, self.encoded_head = (), b""

    def unfold(self) -> None:
        """Each row holds all of its values again: others follow, without this head."""
        if self.head:
            self.values[:] = HeadedRows(self.head, self.values)
            self.head, self.encoded_head = (), b""

    @property
    def whole(self) -> Sequence[Sequence[Any]]:
        """See :class:`Parcel`, as for all of these."""
        return HeadedRows(self.head, self.values) if self.head else self.values

    def well_formed(self, fields: int) -> bool:
        """Looks at each value."""
        fields -= len(self.head)
        self.plain = are_plain(self.values, fields)
        return self.plain or well_formed(self.values, fields)

    def destinations(self, consumers: Sequence[Consumer]) -> Destinations:
        """Those picked at emit first."""
        rows = self.whole
        if not self.picked or not rows:
            return _routed(rows, None, consumers)
        out = list(self.picked.destinations(len(rows)))
        others = self.picked.others(len(rows))
        if others:
            out += _routed([rows[i] for i in others], np.array(others, dtype=np.intp), consumers)
        return out

    def encode(self, picked: Int | None, codec: RowCodec) -> bytes:
        """Their values without the head."""
        rows: Sequence[Sequence[Any]]
        if picked is None:
            rows = self.values
        elif _neighbours(picked):
            rows = self.values[int(picked[0]) : int(picked[-1]) + 1]
        else:
            rows = [self.values[i] for i in picked.tolist()]
        return codec.encode(rows, plain=self.plain)

    def describe(self, header: Header) -> None:
        """The head travels once."""
        header.head = self.encoded_head

    def faults(self, sendable: Sendable) -> Iterator[EncodingError | None]:
        """Row by row."""
        self.unfold()
        for row, values in enumerate(self.values):
            error = sendable.why_not(values)
            yield error if error is None else _placed(error, self.place_of(row))

    def take_out(self, bad: Sequence[int], refused: Callable[[int], None]) -> None:
        """One at a time."""
        for place in bad:
            refused(place)
            del self.values[place], self.marks[place]
            self.picked.take_out(place)
            self._without(place)

    def _without(self, row: int) -> None:
        """Of a call that emitted it two are left, as far as places go."""
        calls, self.calls[:] = list(self.calls), []
        for call in calls:
            start, end, first = call
            if start <= row < end:
                self.calls.append([start, row, first])
                call[0], call[2] = row, first + row + 1 - start
            elif row < start:
                call[0] -= 1
            call[1] -= row < end < OPEN
            self.calls.append(call)

    def take_ids(self) -> list[Any]:
        """From the marks."""
        ids = [mark for mark in self.marks if mark is not None]
        self.marks[:] = [None] * len(self.marks)
        return ids


@dataclass(slots=True)
class ColumnParcel:
    """Rows of a record batch, all of which leave at once.

    ``origin`` is a spout's :class:`TrackedColumns` or a bolt's :class:`ColumnAnchors`; None: no row has a tree.
    """

    columns: ColumnRows
    origin: Any

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def batch(self) -> pa.RecordBatch:
        """The record batch."""
        return self.columns.batch

    @property
    def whole(self) -> Sequence[Sequence[Any]]:
        """See :class:`Parcel`, as for all of these."""
        return self.columns

    def well_formed(self, fields: int) -> bool:  # noqa: ARG002
        """It was looked at when it was emitted."""
        return True

    def destinations(self, consumers: Sequence[Consumer]) -> Destinations:
        """All by routers."""
        return _routed(self.columns, None, consumers)

    def encode(self, picked: Int | None, codec: RowCodec) -> bytes:  # noqa: ARG002
        """In Arrow's format."""
        return bytes(encode_batch(part_of(self.batch, picked)))

    def describe(self, header: Header) -> None:
        """In Arrow's format."""
        header.codec = ARROW

    def faults(self, sendable: Sendable) -> Iterable[EncodingError | None]:
        """Without a look at values that no key is made of."""
        return sendable.columns_why_not(self.batch)

    def take_out(self, bad: Sequence[int], refused: Callable[[int], None]) -> None:
        """All at once."""
        for place in bad:
            refused(place)
        good = np.delete(np.arange(len(self), dtype=np.intp), list(bad))
        self.columns = ColumnRows(self.batch.take(good))
        self.origin = None if self.origin is None else self.origin.picked(good)

    def take_ids(self) -> list[Any]:
        """From what was emitted beside the batch."""
        origin, self.origin = self.origin, None
        return [] if origin is None else [tup_id for tup_id in plain(origin.ids) if tup_id is not None]


def _placed(error: EncodingError, place: int | None) -> EncodingError:
    """It says which row of ``emit_many`` it is about, if it is one."""
    if place is None:
        return error
    placed = EncodingError(f"{error.message}; rows[{place}] of emit_many", hint=error.hint)
    placed.certain = error.certain
    return placed


def _routed(rows: Sequence[Sequence[Any]], places: Int | None, consumers: Sequence[Consumer]) -> Destinations:
    """``places`` are the numbers of these rows (None: from 0 on)."""
    out: Destinations = []
    for consumer in consumers if rows else ():
        if consumer.router is None:
            continue
        if consumer.router.fixed is not None:
            out.append((consumer.targets[consumer.router.fixed], places))
            continue
        for place, picked in consumer.router.shares(rows):
            out.append((consumer.targets[place], picked if places is None else places[picked]))
    return out


def repeats(picked: Int) -> bool:
    """Whether one of these rows, ascending, comes more than once: a custom grouping may name a task twice."""
    return bool((picked[1:] == picked[:-1]).any())


def part_of(batch: pa.RecordBatch, picked: Int | None) -> pa.RecordBatch:
    """Some rows of a batch, ascending; neighbours without a copy."""
    if picked is None:
        return batch
    part = batch.slice(int(picked[0]), len(picked)) if _neighbours(picked) else batch.take(picked)
    return part_without_dictionaries(part)


def _neighbours(picked: Int) -> bool:
    """Whether these rows, ascending, follow on one another, each once."""
    return len(picked) > 0 and bool((picked[1:] - picked[:-1] == 1).all())
