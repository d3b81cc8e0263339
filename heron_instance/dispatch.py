"""From what waits to messages: rows routed and encoded once for each destination task.

:meth:`Dispatch.flush` routes the rows of each stream, hangs new edges on the trees of their anchors, encodes, and puts
one message a destination and run into the output queue, in the order of emission towards each task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ardea.errors import EncodingError
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.emission import emission_order, interleaved
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.input_batch import Int, ranges
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.output import TaskOutput
from ardea.heron_instance.parcels import repeats
from ardea.heron_instance.sendable import Sendable
from ardea.heron_instance.trees import Trees
from ardea.protocol.flow import START_ROWS
from ardea.protocol.ids import U64
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import MANY, ONE, ROWS, Header

ENOUGH = 3
"""Rows that cannot be sent, and none that could: it is the code that emits, and not the rows."""
_ODD = np.uint64(1)  # no edge is zero: it would leave its tree unchanged


class Origins(Protocol):
    """Where the rows of a flush come from: a spout makes their roots, a bolt takes those of their anchors."""

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        """The trees of all rows of the buffer, ``size`` bytes encoded; None: nothing is tracked."""

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """``message``, with these rows (None: all), is the next to leave; all edges of its buffer are known."""

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """All batches of the buffer have left."""

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """That row cannot be sent, and is about to be taken out."""

    @property
    def gives_up(self) -> bool:
        """Whether nobody else decides what becomes of such a row."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Encoded rows of one stream for one task; ``picked`` None: all rows of the buffer."""

    target: int
    buffer: StreamBuffer
    picked: Int | None
    values: bytes
    count: int


class _UnsendableError(Exception):
    """Some row of the buffer cannot be sent."""

    def __init__(self, buffer: StreamBuffer) -> None:
        self.buffer = buffer


class Dispatch:
    """Of one task.

    ``paces``: so many rows fit a batch to a task.  ``watcher`` looks at what is about to leave.
    """

    def __init__(self, env: Environment, task_output: TaskOutput) -> None:
        settings = env.settings
        self._env = env
        self.task_output = task_output
        self.paces: dict[int, int] = {}
        self.watcher: Callable[[list[StreamBuffer]], None] | None = None
        self._codec = RowCodec(settings.pickle)
        self._random: Callable[[int], U64] = env.rng.bit_generator.random_raw  # several times as fast as integers()
        self._max_rows = settings.batch_rows
        self._max_replays = settings.max_tuple_replays
        self._refused = 0
        self._max_tuple = settings.max_tuple_bytes
        # A single row that is larger is looked at by its own limit.
        self._max_batch = min(settings.drain_size, settings.max_tuple_bytes)

    def flush(self, origins: Origins, part: StreamBuffer | None = None) -> None:
        """Sends everything emitted since the last flush; or ``part`` of the only stream, in the middle of a call."""
        task_output = self.task_output
        used = [b for b in (task_output.buffers.values() if part is None else (part,)) if len(b)]
        if not used:
            return
        taken = sum(map(len, used))
        if self.watcher is not None:
            self.watcher(used)
        batches = self._encoded(used, origins)
        sizes = {id(buffer): 0 for buffer in used}
        for batch in batches:
            sizes[id(batch.buffer)] += len(batch.values)
        trees = {id(buffer): origins.trees(buffer, sizes[id(buffer)]) for buffer in used if len(buffer)}
        messages = [self._message(batch, trees[id(batch.buffer)]) for batch in batches]
        for batch, message in zip(batches, messages, strict=True):
            known = trees[id(batch.buffer)]
            if known is not None:
                origins.ahead(message, batch.picked, known)
            self._env.output.put(message)
        for buffer in used:
            known = trees.get(id(buffer))
            if known is not None:
                origins.anchored(buffer, known)
        self._learn_size(sum(sizes.values()), sum(map(len, used)))
        if part is None:
            task_output.clear()
        else:
            task_output.buffers[part.plan.name].left(taken, len(part))

    def drop(self) -> int:
        """Forgets everything emitted since the last flush; how many rows that were."""
        rows = self.task_output.waiting
        self.task_output.clear()
        return rows

    def _learn_size(self, size: int, rows: int) -> None:
        """How many rows inside one call make a flush: four batches, or four megabyte settings."""
        per_row = max(1, size // max(1, rows))
        self.task_output.row_limit = max(1, min(self._max_rows, self._max_batch // per_row) * 4)

    def _encoded(self, used: list[StreamBuffer], origins: Origins) -> list[Batch]:
        """All batches of the flush, in the order in which they leave; rows that cannot be sent are taken out."""
        while True:
            try:
                return [
                    batch
                    for target, buffer, picked in self._runs(used)
                    for batch in self._batches(target, buffer, picked)
                ]
            except _UnsendableError as unsendable:
                self._refuse(unsendable.buffer, origins)

    def _runs(self, used: list[StreamBuffer]) -> Iterator[tuple[int, StreamBuffer, Int | None]]:
        """(task, buffer, rows): runs of one stream each, for each task in the order of emission."""
        parcels: dict[int, list[tuple[StreamBuffer, Int | None]]] = {}
        for buffer in used:
            parcel = buffer.parcel
            if not parcel.well_formed(len(buffer.plan.fields)):
                raise _UnsendableError(buffer)
            try:
                destinations = parcel.destinations(buffer.consumers)
            except EncodingError:
                raise _UnsendableError(buffer) from None
            for target, picked in destinations:
                parcels.setdefault(target, []).append((buffer, picked))
        # A component with one stream notes no runs: its rows stand in the order of emission.
        runs, buffers = self.task_output.runs, self.task_output.buffers
        order = (
            emission_order(runs, {id(b): len(b) for b in buffers.values()})
            if len(runs) > 1
            else {b.number: np.arange(len(b)) for b in used}
        )
        for target, parts in parcels.items():
            if len(parts) == 1:
                yield target, *parts[0]
            else:
                yield from interleaved(target, parts, order)

    def _batches(self, target: int, buffer: StreamBuffer, picked: Int | None) -> Iterator[Batch]:
        """Batches no larger than a second of the task's work, nor than the byte setting (but for a single row)."""
        total = len(buffer) if picked is None else len(picked)
        limit = min(self.paces.get(target, START_ROWS), self._max_rows)
        if total > limit:
            picked = np.arange(total, dtype=np.intp) if picked is None else picked
            for start in range(0, total, limit):
                yield from self._batches(target, buffer, picked[start : start + limit])
            return
        try:
            values = buffer.parcel.encode(picked, self._codec)
        except EncodingError:
            raise _UnsendableError(buffer) from None
        if len(values) <= self._max_batch:
            yield Batch(target, buffer, picked, values, total)
        elif total > 1:
            picked = np.arange(total, dtype=np.intp) if picked is None else picked
            for part in (picked[: total // 2], picked[total // 2 :]):
                yield from self._batches(target, buffer, part)
        elif len(values) <= self._max_tuple:
            yield Batch(target, buffer, picked, values, total)
        elif picked is None:  # as a part it travels without the dictionaries of its record batch
            yield from self._batches(target, buffer, np.arange(total, dtype=np.intp))
        else:
            raise _UnsendableError(buffer)

    def _message(self, batch: Batch, trees: Trees | None) -> OutMessage:
        """Hangs a new random edge on the trees of each row, and adds the columns of ids."""
        buffer, picked, env = batch.buffer, batch.picked, self._env
        header = Header(kind=ROWS, source=env.task.task, target=batch.target, stream=buffer.number, rows=batch.count)
        header.epoch, header.timeline = env.plan.epoch, env.timeline
        buffer.parcel.describe(header)
        frames = [batch.values]
        if trees is not None:
            edges = self._random(batch.count) | _ODD
            if picked is None:
                trees.xors = edges if trees.xors is None else trees.xors ^ edges
            else:
                if trees.xors is None:
                    trees.xors = np.zeros(len(buffer), dtype=np.uint64)
                if repeats(picked):
                    np.bitwise_xor.at(trees.xors, picked, edges)
                else:
                    trees.xors[picked] ^= edges
            frames += _ids(header, picked, trees, edges)
            if env.tracing is not None and trees.traces:
                env.tracing.write(header, picked, trees.traces)
        return OutMessage(header, frames, batch.count, sum(map(len, frames)))

    def _refuse(self, buffer: StreamBuffer, origins: Origins) -> None:
        """Takes out rows that cannot be sent, so that one bad value does not fail its neighbours."""
        task_output = self.task_output
        where = f"component {self._env.task.component}, stream {buffer.plan.name}"
        routers = [c.router for c in buffer.consumers if c.router is not None]
        found = buffer.parcel.faults(Sendable(where, buffer.plan.fields, routers, self._codec, self._max_tuple))
        bad = {place: error for place, error in enumerate(found) if error is not None}
        if not bad:
            raise EncodingError(f"{where}: a batch cannot be encoded")
        self._look_for_a_mistake(list(bad.values()), origins)

        def refused(place: int) -> None:
            origins.refused(buffer, place, bad[place])
            task_output.runs = [(b, start - (b is buffer and start > place)) for b, start in task_output.runs]

        buffer.parcel.take_out(sorted(bad, reverse=True), refused)

    def _look_for_a_mistake(self, bad: Sequence[EncodingError], origins: Origins) -> None:
        """Raises the first of these, if it is the code that emits: no row of this task has ever left, and none can."""
        if not all(error.certain for error in bad):
            return
        self._refused += len(bad)
        none_left = self.task_output.waiting == len(bad) and self.task_output.emitted == len(bad)
        processed = sum(self._env.instruments.execute.buckets)
        if none_left and processed <= self._refused >= ENOUGH and self._max_replays is None and origins.gives_up:
            raise bad[0]


def _ids(header: Header, picked: Int | None, trees: Trees, edges: U64) -> list[bytes]:
    """The columns of ids."""
    if trees.counts is None:
        header.ids = ONE
        return [(trees.roots if picked is None else trees.roots[picked]).tobytes(), edges.tobytes()]
    header.ids = MANY
    counts = trees.counts if picked is None else trees.counts[picked]
    if picked is None:
        roots = trees.roots
    else:
        starts = np.cumsum(trees.counts) - trees.counts
        roots = trees.roots[ranges(starts[picked], counts)]
    offsets = np.concatenate(([0], np.cumsum(counts))).astype("<u4")
    return [offsets.tobytes(), roots.tobytes(), np.repeat(edges, counts).tobytes()]
