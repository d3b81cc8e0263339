"""What a component emits, until it leaves: the streams of a task and who reads them.

An emit only appends; :class:`ardea.heron_instance.dispatch.Dispatch` does everything else, a batch at a time.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from ardea.errors import EncodingError, Misuse, UserError, printable
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.input_batch import Int
from ardea.heron_instance.parcels import ColumnParcel, Consumer, RowParcel
from ardea.heron_instance.routing import Emitter, Router, make_router
from ardea.heron_instance.sendable import well_formed
from ardea.plan.logical import GroupingPlan
from ardea.protocol.arrow import arrow
from ardea.protocol.column_types import travelling
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows
from ardea.protocol.values import RowCodec

_HEAD_BYTES = 256
_LOCAL = ("local_or_shuffle", "load_aware")
"""Groupings for which it matters which tasks are in the container."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one call that emits many: ``first`` is the place of the first in it.

    ``head`` stands in front of each; ``chosen``: their tasks are wanted at once.
    """

    rows: list[Any]
    first: int = 0
    head: tuple[Any, ...] = ()
    chosen: bool = False

    @property
    def whole(self) -> Sequence[Sequence[Any]]:
        """The rows with all of their values."""
        return HeadedRows(self.head, self.rows) if self.head else self.rows


class TaskOutput:
    """All output streams of one task.

    ``row_limit`` is how many rows inside one call make a flush; ``runs`` say from which row of it on a buffer was
    emitted to, in the order of emission.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self.component = env.task.component
        self._codec = RowCodec(env.settings.pickle)
        self.row_limit = env.settings.batch_rows * 4
        self.runs: list[tuple[StreamBuffer, int]] = []
        self._local: frozenset[int] = frozenset()
        streams = env.plan.logical[self.component].streams
        self.buffers = {stream.name: StreamBuffer(number, stream, []) for number, stream in enumerate(streams)}
        self.replanned()

    # --- who reads --------------------------------------------------------------------------------------------

    def replanned(self) -> None:
        """Other tasks may read now; nothing waits to be flushed.  Routers whose targets stay go on as they are."""
        plan, task = self._env.plan, self._env.task
        former, self._local = self._local, frozenset(t.task for t in plan.tasks_in(task.container))
        for buffer in self.buffers.values():
            known = {consumer.component: consumer for consumer in buffer.consumers}
            buffer.consumers = []
            for reader, grouping in plan.logical.consumers(self.component, buffer.plan.name):
                consumer, targets = known.get(reader.name), plan.component_tasks[reader.name]
                moved = former != self._local and grouping.kind in _LOCAL
                if consumer is None or consumer.targets != targets or moved:
                    consumer = Consumer(reader.name, self._router(grouping, buffer, targets), targets)
                buffer.consumers.append(consumer)

    def take_over(self, former: TaskOutput) -> None:
        """What the task has emitted in former timelines still counts."""
        for name, buffer in former.buffers.items():
            self.buffers[name].emitted = buffer.emitted

    def _router(self, grouping: GroupingPlan, buffer: StreamBuffer, targets: tuple[int, ...]) -> Router | None:
        if grouping.kind == "direct":
            return None
        env = self._env
        key_groups = env.settings.key_groups if env.settings.remembers else None
        return make_router(
            grouping, buffer.plan, targets, Emitter(self.component, self._local, env.rng, env.context, key_groups)
        )

    def reads(self, stream: str, task: int) -> bool:
        """Whether a task reads the stream."""
        return any(task in consumer.targets for consumer in self.buffers[stream].consumers)

    def refresh(self, loads: Mapping[int, float]) -> None:
        """How full the ways to the tasks are, 0 to 1, as the manager says each second."""
        for buffer in self.buffers.values():
            for consumer in buffer.consumers:
                if consumer.router is not None:
                    consumer.router.refresh(loads)

    # --- what waits -------------------------------------------------------------------------------------------

    @property
    def waiting(self) -> int:
        """Rows emitted and not yet flushed."""
        return sum(map(len, self.buffers.values()))

    @property
    def emitted(self) -> int:
        """Rows emitted so far."""
        return sum(b.emitted + len(b) for b in self.buffers.values())

    def on_its_way(
        self, part: StreamBuffer | None
    ) -> tuple[Iterable[StreamBuffer], Sequence[tuple[StreamBuffer, int]]]:
        """The buffers of a flush and their runs: all, or ``part`` of the only one."""
        return (self.buffers.values(), self.runs) if part is None else ((part,), ())

    def clear(self) -> None:
        """Nothing waits any more."""
        for buffer in self.buffers.values():
            buffer.clear()
        self.runs.clear()

    def buffer(self, stream: str) -> StreamBuffer:
        """The buffer of a declared stream, noting a change of stream for the order of emission."""
        try:
            buffer = self.buffers[stream]
        except (KeyError, TypeError):
            raise self._unknown(stream) from None
        if not self.runs or self.runs[-1][0] is not buffer:
            self.runs.append((buffer, len(buffer)))
        return buffer

    def _unknown(self, stream: Any) -> UserError:
        if not isinstance(stream, str):
            what = f"the stream of an emit is a text, not {printable(stream, 200)}"
            return Misuse(what, hint="emit(values, stream='NAME', anchors=[tup])")
        known = ", ".join(self.buffers) or "none"
        return UserError(
            f"Unknown stream ID: {stream}: component {self.component} declares {known}", hint="declare it in `outputs`"
        )

    # --- emits ------------------------------------------------------------------------------------------------

    def emit(
        self, buffer: StreamBuffer, values: Sequence[Any], mark: Any, direct_task: int | None, *, chosen: bool
    ) -> Sequence[int]:
        """One row; with its tasks if it has a ``direct_task``, or they are to be ``chosen`` at once."""
        if direct_task is not None:
            return self.emit_direct(buffer, values, direct_task, mark)
        self.check(buffer)
        if chosen:
            return self.emit_chosen(buffer, values, mark)
        buffer.rows.values.append(values)
        buffer.rows.marks.append(mark)
        return ()

    def emit_direct(self, buffer: StreamBuffer, values: Sequence[Any], task: int, mark: Any) -> tuple[int, ...]:
        """To one task that reads the stream with a direct grouping; to nobody if it does not."""
        if not buffer.plan.direct:
            raise UserError(
                f"Cannot emitDirect to a task expecting a regular grouping: stream {buffer.plan.name} of "
                f"{self.component} is not declared direct"
            )
        if type(task) is not int and not isinstance(task, SupportsIndex):
            raise UserError(
                f"component {self.component}, stream {buffer.plan.name}: direct_task={task!r} is no task's id",
                hint="context.component_tasks(component) has the ids of its tasks",
            )
        known = any(task in c.targets for c in buffer.consumers if c.router is None)
        rows = buffer.rows
        tasks = rows.picked.single[len(rows.values)] = (task,) if known else ()
        rows.values.append(values)
        rows.marks.append(mark)
        return tasks

    def emit_chosen(self, buffer: StreamBuffer, values: Sequence[Any], mark: Any) -> tuple[int, ...]:
        """Routes one row at once, because the emitter wants to know its tasks; none, if it will be refused."""
        rows = buffer.rows
        tasks: tuple[int, ...] = ()
        if well_formed([values], len(buffer.plan.fields)):
            with contextlib.suppress(EncodingError):
                tasks = tuple(t for c in buffer.consumers if c.router is not None for t in c.router.route_one(values))
                rows.picked.single[len(rows.values)] = tasks
        rows.values.append(values)
        rows.marks.append(mark)
        return tasks

    def room(self, stream: str) -> int:
        """How many rows more make a flush inside a call."""
        buffer = self.buffers.get(stream)
        return max(1, self.row_limit - (0 if buffer is None else len(buffer.rows.values)))

    def emit_part(self, buffer: StreamBuffer, part: Part, marks: Sequence[Any]) -> Mapping[int, int]:
        """Many rows; how many each task gets, if their tasks are to be chosen at once."""
        self.check(buffer)
        waiting, first = buffer.rows, len(buffer.rows.values)
        picked = self._pick(buffer, part, first) if part.chosen else {}
        call = waiting.call(part.first)
        if picked is None:
            waiting.unfold()
            each = zip(part.whole, marks, strict=True)
            counts = Counter(task for row, mark in each for task in self.emit_chosen(buffer, row, mark))
        else:
            waiting.values.extend(self._folded(waiting, part))
            waiting.marks.extend(marks)
            counts = self._picked(waiting, picked, range(first, len(waiting.values))) if part.chosen else Counter()
        waiting.called(call)
        return counts

    def _pick(self, buffer: StreamBuffer, part: Part, first: int) -> dict[int, list[Int]] | None:
        """The numbers of each task's rows, from ``first`` on; None: each has to be looked at by itself."""
        routers = [(c.router, c.targets) for c in buffer.consumers if c.router is not None]
        well = well_formed(part.rows, len(buffer.plan.fields) - len(part.head))
        if not well or any(router.asks_author for router, _ in routers):
            return None
        whole = part.whole
        picked: dict[int, list[Int]] = {}
        try:
            for router, targets in routers:
                for place, rows in router.shares(whole):
                    picked.setdefault(targets[place], []).append(rows + first)
        except EncodingError:
            if part.head:
                raise
            return None
        return picked

    @staticmethod
    def _picked(waiting: RowParcel, picked: Mapping[int, list[Int]], rows: range) -> Counter[int]:
        """Notes which tasks get these rows."""
        for task, parts in picked.items():
            waiting.picked.many.setdefault(task, []).extend(parts)
        waiting.picked.ranges.append(rows)
        return Counter({task: sum(map(len, parts)) for task, parts in picked.items()})

    def _folded(self, waiting: RowParcel, part: Part) -> Iterable[Sequence[Any]]:
        """The rows as they will wait: without their head, if what waits has the same."""
        encoded = self._encoded_head(part.head) if part.head else b""
        if not waiting.values:
            waiting.head, waiting.encoded_head = (part.head, encoded) if encoded else ((), b"")
        elif waiting.encoded_head != encoded:
            waiting.unfold()
            encoded = b""
        return part.rows if encoded or not part.head else HeadedRows(part.head, part.rows)

    def _encoded_head(self, head: tuple[Any, ...]) -> bytes:
        """Empty: these values stand in each row, as those that cannot be sent or are too large for a header do."""
        if len(self.buffers) == 1:
            return b""  # an emit may append to the rows of an only stream without a look at their head
        try:
            encoded = self._codec.encode([head])
        except EncodingError:
            return b""
        return encoded if len(encoded) <= _HEAD_BYTES else b""

    def emit_columns(self, stream: str, batch: Any, origin: Any, leave: Callable[[], None]) -> None:
        """A record batch that :meth:`checked_columns` gives; nothing else waits, and ``leave`` flushes it at once."""
        if not batch.num_rows:
            return
        buffer = self.buffer(stream)
        buffer.columns = ColumnParcel(ColumnRows(batch), origin)
        try:
            leave()
        except BaseException:
            buffer.columns = None  # it would take the place of rows to come
            raise

    def checked_columns(self, stream: str, batch: Any) -> Any:
        """The record batch as it travels; UserError: the rules for such are broken."""
        buffer = self.buffers.get(stream)
        if buffer is None:
            raise self._unknown(stream)
        self.check(buffer)
        if not isinstance(batch, arrow().RecordBatch):
            raise UserError(
                f"component {self.component}, stream {stream}: emit_batch got a {type(batch).__qualname__}",
                hint="emit a pyarrow.RecordBatch; a table has to_batches()",
            )
        if batch.num_columns != len(buffer.plan.fields):
            raise UserError(
                f"component {self.component}, stream {buffer.plan.name}: a batch has {batch.num_columns} columns, "
                f"the stream declares {len(buffer.plan.fields)} ({', '.join(buffer.plan.fields)})"
            )
        return travelling(batch)

    def check(self, buffer: StreamBuffer) -> None:
        """The emit rules that need no routing; raises UserError."""
        if buffer.plan.direct:
            raise UserError(
                f"Cannot do regular emit to direct stream {buffer.plan.name} of {self.component}",
                hint="pass direct_task=",
            )
