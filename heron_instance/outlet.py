"""What a component emits, until it leaves: rows by stream, routed and encoded once for each destination task.

An emit only appends.  :meth:`Outlet.flush` does everything else, a batch at a time: routes the rows of each stream,
hangs new edges on the trees of their anchors, encodes, and puts one message a destination and run into the output
queue, in the order of emission towards each task.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex

import numpy as np

from ardea.errors import EncodingError, UserError
from ardea.heron_instance.buffers import Consumer, StreamBuffer, repeats
from ardea.heron_instance.emission import emission_order, interleaved
from ardea.heron_instance.inlet import Int, ranges
from ardea.heron_instance.routing import make_router
from ardea.heron_instance.sendable import columns_why_not, own, well_formed, why_not, without_dictionaries
from ardea.heron_instance.trees import Trees
from ardea.plan.logical import GroupingPlan, StreamPlan
from ardea.plan.physical import PhysicalPlan, TaskPlan
from ardea.protocol.arrow import arrow, encode_batch
from ardea.protocol.columns import ColumnRows
from ardea.protocol.flow import START_ROWS
from ardea.protocol.headed import HeadedRows
from ardea.protocol.ids import U64
from ardea.protocol.values import RowCodec, are_plain
from ardea.protocol.wire_pb2 import ARROW, MANY, ONE, ROWS, Header

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD_BYTES = 256
_LOCAL = ("local_or_shuffle", "load_aware")
"""Groupings for which it matters which tasks are in the container."""
_ODD = np.uint64(1)  # no edge is zero: it would leave its tree unchanged


@dataclass(frozen=True, slots=True)
class OutMessage:
    """One message for the gateway."""

    header: Header
    frames: list[bytes]
    rows: int
    size: int


class Origins(Protocol):
    """Where the rows of a flush come from: a spout makes their roots, a bolt takes those of their anchors."""

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:
        """The trees of all rows of the buffer, ``size`` bytes encoded; None: nothing is tracked."""

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """``message``, with these rows (None: all), is the next to leave; all edges of its buffer are known."""

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """All batches of the buffer have left."""

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """That row cannot be sent, and was taken out."""


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


class Outlet:
    """All output streams of one task.  ``put`` takes finished messages; ``pace`` rows fit a batch to a task."""

    def __init__(
        self,
        plan: PhysicalPlan,
        task: TaskPlan,
        streams: Mapping[str, StreamPlan],
        groupings: Callable[[str, str], Sequence[tuple[str, GroupingPlan]]],
        context: Any,
        codec: RowCodec,
        rng: np.random.Generator,
        put: Callable[[OutMessage], None],
        max_rows: int,
        max_tuple_bytes: int,
        max_batch_bytes: int,
    ) -> None:
        self.task = task
        self.codec = codec
        self.paces: dict[int, int] = {}
        self.watcher: Callable[[list[StreamBuffer]], None] | None = None  # looks at what is about to leave
        self.buffers: dict[str, StreamBuffer] = {}
        self.runs: list[tuple[StreamBuffer, int]] = []
        self._epoch = 0
        self._groupings, self._context, self._rng = groupings, context, rng
        self._random: Callable[[int], U64] = rng.bit_generator.random_raw  # several times as fast as integers()
        self._put = put
        self._max_tuple = max_tuple_bytes
        self._max_batch = min(max_batch_bytes, max_tuple_bytes)  # a single row in it is looked at by its own limit
        self._max_rows = max_rows
        self.row_limit = max_rows * 4
        self._local: frozenset[int] = frozenset()
        for number, stream in enumerate(streams.values()):
            self.buffers[stream.name] = StreamBuffer(number, stream, [])
        self.replanned(plan)

    def replanned(self, plan: PhysicalPlan) -> None:
        """Other tasks may read now; nothing waits to be flushed.  Routers whose targets stay go on as they are."""
        self._epoch, task = plan.epoch, plan.tasks[self.task.task]
        former, self._local = self._local, frozenset(t.task for t in plan.tasks_in(task.container))
        for buffer in self.buffers.values():
            stream, known, consumers = buffer.plan, {c.component: c for c in buffer.consumers}, []
            for reader, grouping in self._groupings(task.component, stream.name):
                consumer, targets = known.get(reader), plan.component_tasks[reader]
                moved = former != self._local and grouping.kind in _LOCAL
                if consumer is None or consumer.targets != targets or moved:
                    router = None
                    if grouping.kind != "direct":
                        router = make_router(
                            grouping,
                            stream.fields,
                            targets,
                            self._local,
                            self._rng,
                            self._context,
                            task.component,
                            stream.name,
                        )
                    consumer = Consumer(reader, router, targets)
                consumers.append(consumer)
            buffer.consumers = consumers

    def reads(self, stream: str, task: int) -> bool:
        """Whether a task reads the stream."""
        return any(task in consumer.targets for consumer in self.buffers[stream].consumers)

    @property
    def feeds(self) -> tuple[int, ...]:
        """Every task that this one can send to."""
        return tuple(sorted({t for b in self.buffers.values() for c in b.consumers for t in c.targets}))

    def refresh(self, loads: Mapping[int, float]) -> None:
        """How full the ways to the tasks are, 0 to 1, as the manager says each second."""
        for buffer in self.buffers.values():
            for consumer in buffer.consumers:
                if consumer.router is not None:
                    consumer.router.refresh(loads)

    @property
    def waiting(self) -> int:
        """Rows emitted and not yet flushed."""
        return sum(map(len, self.buffers.values()))

    def buffer(self, stream: str) -> StreamBuffer:
        """The buffer of a declared stream, noting a change of stream for the order of emission."""
        try:
            buffer = self.buffers[stream]
        except KeyError:
            known = ", ".join(self.buffers) or "none"
            raise UserError(
                f"Unknown stream ID: {stream}: component {self.task.component} declares {known}",
                hint="declare it in `outputs`",
            ) from None
        if not self.runs or self.runs[-1][0] is not buffer:
            self.runs.append((buffer, len(buffer)))
        return buffer

    def emit_direct(self, buffer: StreamBuffer, values: Sequence[Any], task: int, mark: Any) -> tuple[int, ...]:
        """To one task that reads the stream with a direct grouping; to nobody if it does not."""
        if not buffer.plan.direct:
            raise UserError(
                f"Cannot emitDirect to a task expecting a regular grouping: stream {buffer.plan.name} of "
                f"{self.task.component} is not declared direct"
            )
        if type(task) is not int and not isinstance(task, SupportsIndex):
            raise UserError(
                f"component {self.task.component}, stream {buffer.plan.name}: direct_task={task!r} is no task's id",
                hint="context.component_tasks(component) has the ids of its tasks",
            )
        known = any(task in c.targets for c in buffer.consumers if c.router is None)
        tasks = buffer.chosen[len(buffer.rows)] = (task,) if known else ()
        buffer.rows.append(values)
        buffer.marks.append(mark)
        return tasks

    def emit_chosen(self, buffer: StreamBuffer, values: Sequence[Any], mark: Any) -> tuple[int, ...]:
        """Routes one row at once, because the emitter wants to know its tasks; none, if it will be refused."""
        tasks: tuple[int, ...] = ()
        if well_formed([values], len(buffer.plan.fields)):
            with contextlib.suppress(EncodingError):
                tasks = tuple(t for c in buffer.consumers if c.router is not None for t in c.router.route_one(values))
                buffer.chosen[len(buffer.rows)] = tasks
        buffer.rows.append(values)
        buffer.marks.append(mark)
        return tasks

    def emit_routed(self, buffer: StreamBuffer, rows: Sequence[Sequence[Any]], mark: Any) -> dict[int, int]:
        """Routes many rows at once; how many each task gets."""
        if not well_formed(rows, len(buffer.plan.fields)):
            buffer.unfold()
            return dict(Counter(task for row in rows for task in self.emit_chosen(buffer, row, mark)))
        head: tuple[Any, ...] = ()
        body, encoded = rows, b""
        if isinstance(rows, HeadedRows) and (encoded := self._encoded_head(rows.head)):
            head, body = rows.head, rows.body
        first, count = len(buffer.rows), len(rows)
        counts: dict[int, int] = {}
        for consumer in buffer.consumers:
            if consumer.router is None:
                continue
            for place, picked in consumer.router.shares(rows):
                task = consumer.targets[place]
                counts[task] = counts.get(task, 0) + len(picked)
                buffer.parcels.setdefault(task, []).append(picked + first)
        if first == 0:
            buffer.head, buffer.encoded_head = head, encoded
        elif buffer.encoded_head != encoded:
            buffer.unfold()
            body = rows
        buffer.rows.extend([row if type(row) is tuple else own(row) for row in body])
        buffer.marks.extend([mark] * count)
        buffer.parcelled.append(range(first, first + count))
        return counts

    def _encoded_head(self, head: tuple[Any, ...]) -> bytes:
        """Empty: these values stand in each row, as those that cannot be sent or are too large for a header do."""
        if len(self.buffers) == 1:
            return b""  # an emit may append to the rows of an only stream without a look at their head
        try:
            encoded = self.codec.encode([head])
        except EncodingError:
            return b""
        return encoded if len(encoded) <= _HEAD_BYTES else b""

    def emit_columns(self, stream: str, batch: Any, origin: Any, leave: Callable[[], None]) -> None:
        """A record batch that :meth:`check_columns` has seen; nothing else waits, and ``leave`` flushes it at once."""
        if not batch.num_rows:
            return
        buffer = self.buffer(stream)
        buffer.columns, buffer.origin = ColumnRows(batch), origin
        try:
            leave()
        except BaseException:
            buffer.columns = buffer.origin = None  # it would take the place of rows to come
            raise

    def check_columns(self, stream: str, batch: Any) -> None:
        """The rules for record batches; raises UserError."""
        buffer = self.buffer(stream)
        self.check(buffer)
        if not isinstance(batch, arrow().RecordBatch):
            raise UserError(
                f"component {self.task.component}, stream {stream}: emit_batch got a {type(batch).__qualname__}",
                hint="emit a pyarrow.RecordBatch; a table has to_batches()",
            )
        if batch.num_columns != len(buffer.plan.fields):
            raise UserError(
                f"component {self.task.component}, stream {buffer.plan.name}: a batch has {batch.num_columns} columns, "
                f"the stream declares {len(buffer.plan.fields)} ({', '.join(buffer.plan.fields)})"
            )

    def check(self, buffer: StreamBuffer) -> None:
        """The emit rules that need no routing; raises UserError."""
        if buffer.plan.direct:
            raise UserError(
                f"Cannot do regular emit to direct stream {buffer.plan.name} of {self.task.component}",
                hint="pass direct_task=",
            )

    @property
    def emitted(self) -> int:
        """Rows emitted so far."""
        return sum(b.emitted + len(b) for b in self.buffers.values())

    def flush(self, origins: Origins, part: StreamBuffer | None = None) -> None:
        """Sends everything emitted since the last flush; or ``part`` of the only stream, in the middle of a call."""
        used = [b for b in (self.buffers.values() if part is None else (part,)) if len(b)]
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
            self._put(message)
        for buffer in used:
            known = trees.get(id(buffer))
            if known is not None:
                origins.anchored(buffer, known)
        self._learn_size(sum(sizes.values()), sum(map(len, used)))
        if part is not None:
            self.buffers[part.plan.name].left(taken, len(part))
            return
        for buffer in used:
            buffer.clear()
        self.runs.clear()

    def drop(self) -> int:
        """Forgets everything emitted since the last flush; how many rows that were."""
        rows = self.waiting
        for buffer in self.buffers.values():
            buffer.clear()
        self.runs.clear()
        return rows

    def _learn_size(self, size: int, rows: int) -> None:
        """``row_limit``: how many rows inside one call make a flush; four batches, or four megabyte settings."""
        per_row = max(1, size // max(1, rows))
        self.row_limit = max(1, min(self._max_rows, self._max_batch // per_row) * 4)

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
            fields = len(buffer.plan.fields) - len(buffer.head)
            if buffer.columns is None:
                buffer.plain = are_plain(buffer.rows, fields)
                if not buffer.plain and not well_formed(buffer.rows, fields):
                    raise _UnsendableError(buffer)
            try:
                destinations = buffer.destinations()
            except EncodingError:
                raise _UnsendableError(buffer) from None
            for target, picked in destinations:
                parcels.setdefault(target, []).append((buffer, picked))
        # A component with one stream notes no runs: its rows stand in the order of emission.
        order = (
            emission_order(self.runs, {id(b): len(b) for b in self.buffers.values()})
            if len(self.runs) > 1
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
        values = self._encode(buffer, picked)
        if len(values) <= self._max_batch:
            yield Batch(target, buffer, picked, values, total)
        elif total > 1:
            picked = np.arange(total, dtype=np.intp) if picked is None else picked
            for part in (picked[: total // 2], picked[total // 2 :]):
                yield from self._batches(target, buffer, part)
        elif len(values) > self._max_tuple:
            raise _UnsendableError(buffer)
        else:
            yield Batch(target, buffer, picked, values, total)

    def _encode(self, buffer: StreamBuffer, picked: Int | None) -> bytes:
        if buffer.columns is not None:
            return bytes(encode_batch(_part_of(buffer.columns.batch, picked)))
        rows: Sequence[Sequence[Any]]
        if picked is None:
            rows = buffer.rows
        elif _neighbours(picked):
            rows = buffer.rows[int(picked[0]) : int(picked[-1]) + 1]
        else:
            rows = [buffer.rows[i] for i in picked.tolist()]
        try:
            return self.codec.encode(rows, plain=buffer.plain)
        except EncodingError:
            raise _UnsendableError(buffer) from None

    def _message(self, batch: Batch, trees: Trees | None) -> OutMessage:
        """Hangs a new random edge on the trees of each row, and adds the columns of ids."""
        buffer, picked = batch.buffer, batch.picked
        header = Header(kind=ROWS, source=self.task.task, target=batch.target, stream=buffer.number, rows=batch.count)
        header.epoch = self._epoch
        if buffer.columns is not None:
            header.codec = ARROW
        else:
            header.head = buffer.encoded_head
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
            frames += self._columns(header, picked, trees, edges)
        return OutMessage(header, frames, batch.count, sum(map(len, frames)))

    def _columns(self, header: Header, picked: Int | None, trees: Trees, edges: U64) -> list[bytes]:
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

    def _refuse(self, buffer: StreamBuffer, origins: Origins) -> None:
        """Takes out rows that cannot be sent, so that one bad value does not fail its neighbours."""
        where = f"component {self.task.component}, stream {buffer.plan.name}"
        routers = [c.router for c in buffer.consumers if c.router is not None]
        buffer.unfold()
        if buffer.columns is not None:
            found = columns_why_not(buffer.columns.batch, where, routers, self._max_tuple)
        else:
            fields = buffer.plan.fields
            found = (why_not(row, where, fields, routers, self.codec, self._max_tuple) for row in buffer.rows)
        bad = [(place, error) for place, error in enumerate(found) if error is not None]
        if not bad:
            raise EncodingError(f"{where}: a batch cannot be encoded")
        for place, error in reversed(bad):
            origins.refused(buffer, place, error)
            if buffer.columns is None:
                buffer.without_rows([place])
                self.runs = [(b, start - (b is buffer and start > place)) for b, start in self.runs]
        if buffer.columns is not None:
            buffer.without_rows([place for place, _ in bad])


def _part_of(batch: pa.RecordBatch, picked: Int | None) -> pa.RecordBatch:
    """Some rows of a batch, ascending; neighbours without a copy."""
    if picked is None:
        return batch
    part = batch.slice(int(picked[0]), len(picked)) if _neighbours(picked) else batch.take(picked)
    return without_dictionaries(part)


def _neighbours(picked: Int) -> bool:
    """Whether these rows, ascending, follow on one another, each once."""
    return len(picked) > 0 and bool((picked[1:] - picked[:-1] == 1).all())
