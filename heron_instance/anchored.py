"""What a bolt task emits, acks and fails, and how that leaves together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from ardea.component import Bolt, install, overrides
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.acking import Acking, Settled, closed
from ardea.heron_instance.anchoring import Anchoring, Anchors
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.executor import Executor
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.inlet import UNANCHORED, InputBatch, Int
from ardea.heron_instance.joins import joins_of
from ardea.heron_instance.outlet import OutMessage
from ardea.heron_instance.sendable import own
from ardea.heron_instance.trees import Trees
from ardea.protocol.columns import ColumnRows
from ardea.protocol.headed import HeadedRows
from ardea.tuples import ColumnBatch, Tuple


class Anchored(Executor):
    """The output of one bolt task."""

    def __init__(self, env: Environment) -> None:
        super().__init__(env)
        self.bolt = cast("Bolt", env.component)
        self._whole_batches = any(overrides(type(self.bolt), name) for name in ("process_batch", "process_columns"))
        self._batch: InputBatch | None = None
        self._processed = 0  # rows since acks left
        self._acks_left = -math.inf  # when
        self._anchoring = Anchoring(always_mixed=self._whole_batches)
        self.acking = Acking(self.instruments, self.check_thread)
        self._hooks: Hooks | None = None

    # --- the author's calls -----------------------------------------------------------------------------------

    def give(self, emit: Callable[..., list[int] | None], emit_batch: Callable[[Any, str, Any], None]) -> None:
        """Puts the bolt to work with this emit; a class with an ``emit`` of its own reaches it through the base's."""
        acking = self.acking
        collector = _Collector(
            emit,
            self.emit_rows,
            emit_batch,
            acking.ack,
            acking.fail,
            acking.ack_batch,
            acking.fail_batch,
            acking.reset_timeout,
        )
        install(self.bolt, self.env.task.component, collector)
        if not overrides(type(self.bolt), "emit"):
            self.bolt.emit = emit  # type: ignore[method-assign]

    def _emit(
        self,
        values: Sequence[Any],
        stream: str,
        current: int,
        anchors: Sequence[Tuple] | None,
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """The emits that are not the plain one."""
        self.check_thread()
        with self.lock:
            mark: int | Anchors = current if anchors is None else self._anchors(anchors)
            if isinstance(mark, tuple):
                self._anchoring.mixed = True
            buffer = self.outlet.buffer(stream)
            self._anchoring.mark(buffer)
            buffer.unfold()
            values = own(values)
            tasks: list[int] | None = None
            if direct_task is not None:
                tasks = list(self.outlet.emit_direct(buffer, values, direct_task, mark))
            else:
                self.outlet.check(buffer)
                if need_task_ids or self._hooks is not None:
                    tasks = list(self.outlet.emit_chosen(buffer, values, mark))
                else:
                    buffer.rows.append(values)
                    buffer.marks.append(mark)
            if len(buffer.rows) >= self.outlet.row_limit:
                self.overflow()
        if self._hooks is not None:
            self._hooks.emitted(values, stream, tasks or ())
        return tasks if need_task_ids else None

    def emit_rows(self, rows: Sequence[Sequence[Any]], stream: str, head: tuple[Any, ...]) -> Mapping[int, int]:
        """Untracked rows, routed at once; see :meth:`ardea.Bolt.emit_rows`."""
        self.check_thread()
        if self._hooks is not None:  # which are told row by row
            whole = HeadedRows(head, rows)
            return Counter(t for row in whole for t in self._emit(row, stream, UNANCHORED, None, None, True) or ())
        with self.lock:
            buffer = self.outlet.buffer(stream)
            self.outlet.check(buffer)
            self._anchoring.mark(buffer)
            counts = self.outlet.emit_routed(buffer, HeadedRows(head, rows) if head else rows, UNANCHORED)
            if len(buffer.rows) >= self.outlet.row_limit:
                self.overflow()
            return counts

    def emit_columns(self, batch: Any, stream: str, anchors: Any, current: int) -> None:
        """Columns leave at once, behind the rows emitted before; before the eyes of hooks, row by row."""
        self.check_thread()
        with self.lock:
            self.outlet.check_columns(stream, batch)
        joins = joins_of(anchors, self._batch, current, batch.num_rows, auto=self.bolt.auto_anchor)
        if self._hooks is not None:
            for place, values in enumerate(ColumnRows(batch)):
                joined = [] if joins is None else joins.anchors_of(place)
                self._emit(values, stream, UNANCHORED, [Tuple(b.rows[i], i, b) for b, i in joined], None, False)
            return
        with self.lock:
            self.absorb()
            self.send()
            self.outlet.emit_columns(stream, batch, joins, self.overflow)

    def _anchors(self, anchors: Sequence[Tuple]) -> int | Anchors:
        for tup in anchors:
            if closed(tup._batch, tup._index):
                raise UserError(
                    f"{self.env.task.name}: emit anchored to tuple {tup.id} of {tup.component}, "
                    "which is acked or failed already",
                    hint="set auto_ack = False and ack it after the emit",
                )
        if len(anchors) == 1 and anchors[0]._batch is self._batch:
            return anchors[0]._index
        return tuple(t for t in anchors if isinstance(t._batch, InputBatch)) or UNANCHORED

    # --- output -----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Rows, acks or fails."""
        return self.acking.waiting or self.outlet.waiting > 0

    def send(self) -> None:
        """Rows first: they add edges to what the acks say."""
        self._acks_left = self.send_rows()
        self._processed = 0
        self._send_acks(self.acking.take())

    def _send_acks(self, settled: Settled) -> None:
        for message in settled.messages():
            self._put(message)

    def send_rows(self, part: StreamBuffer | None = None) -> float:
        """Without the acks; returns when that was done.

        What a submitted function emits cancels the task's rest, which begins again behind it.
        """
        rests_again = self.markers.resting and self.outlet.waiting > 0
        self.flush_rows(part)
        if rests_again:
            self.rest()
        if part is None:
            self._anchoring.restart(self._batch, self.outlet.buffers.values())
        return self.clock()

    def send_inside(self) -> bool:
        """First of all it takes the acks: of a tuple acked later, rows may be anchored to it that do not leave yet."""
        if not self.unsent or not self.may_send_inside:
            return False
        acks, whole = self.acking.take_acks(), self._anchoring
        try:
            if self.only is None:
                self.send_rows()
            else:
                part = self.only.part(len(self.only.rows))
                self._anchoring = whole.part(self.only.gone, self.only.gone + len(part))
                self.send_rows(part)
        except BaseException:
            self.acking.put_back(acks)
            raise
        finally:
            self._anchoring = whole
        self._send_acks(self.acking.take(acks))
        return True

    def absorb(self) -> None:
        """Anchors too."""
        if self.only is not None and self.only.gone:
            self._anchoring.cut(self.only.gone)
            super().absorb()

    # --- origins ----------------------------------------------------------------------------------------------

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:  # noqa: ARG002 -- a spout needs the size
        """The trees of the rows' anchors."""
        return self._anchoring.trees(buffer)

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """A bolt begins no trees."""

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """The new edges hang on the anchors."""
        self._anchoring.anchored(buffer, trees)

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """Fails the tuples that the row was anchored to, although acked: acks leave behind what was emitted before."""
        origin = "not anchored"
        for batch, index in self._anchoring.take_out(buffer, row):
            origin = f"while processing tuple {batch.id_of(index)} of {batch.component}"
            self.acking.fail_again(batch, index)
        self.refuse(error, origin)


@dataclass(frozen=True, slots=True)
class _Collector:
    """What the base class's methods reach when the author overrides them."""

    emit: Callable[..., list[int] | None]
    emit_rows: Callable[[Sequence[Sequence[Any]], str, tuple[Any, ...]], Mapping[int, int]]
    emit_batch: Callable[[Any, str, Any], None]
    ack: Callable[[Tuple], None]
    fail: Callable[[Tuple], None]
    ack_batch: Callable[[ColumnBatch, Any], None]
    fail_batch: Callable[[ColumnBatch, Any], None]
    reset_timeout: Callable[[Tuple], None]
