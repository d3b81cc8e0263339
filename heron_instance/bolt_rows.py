"""What a bolt task emits, acks and fails, and how that leaves together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import get_ident
from typing import Any, cast

from ardea.component import Bolt
from ardea.errors import EncodingError, Misuse, UserError, printable
from ardea.heron_instance.acking import Acking, Settled, closed
from ardea.heron_instance.anchoring import Anchoring, Anchors
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.column_anchors import column_anchors_of
from ardea.heron_instance.environment import NO_THREAD
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import UNANCHORED, InputBatch, Int
from ardea.heron_instance.messages import OutMessage
from ardea.heron_instance.output import Part
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.sendable import own
from ardea.heron_instance.trees import Trees
from ardea.protocol.columns import ColumnRows
from ardea.tuples import Tuple


class BoltRows:
    """Of one task: also where the rows come from, and so the origins of a flush.

    ``batch`` is being processed; ``processed`` counts rows since acks left, which was at ``acks_left``.
    """

    def __init__(self, parts: Parts, *, whole_batches: bool) -> None:
        """``whole_batches``: emits may be anchored to one."""
        self._env = parts.env
        self._task_output = parts.task_output
        self._sending = parts.sending
        self._user_code = parts.user_code
        self._reporter = parts.reporter
        self._bolt = cast("Bolt", parts.env.component)
        self.anchoring = Anchoring(always_mixed=whole_batches)
        self.acking = Acking(parts.env.instruments, parts.user_code.check_thread)
        self.hooks: Hooks | None = None
        self.batch: InputBatch | None = None
        self.processed = 0
        self.acks_left = -math.inf

    def begin(self, batch: InputBatch) -> None:
        """It is processed now."""
        self.batch = batch
        self.anchoring.begin(batch, self._task_output.buffers.values())

    # --- emits ------------------------------------------------------------------------------------------------

    def plain_emit(
        self, only: StreamBuffer, other: Callable[..., list[int] | None]
    ) -> tuple[Callable[..., list[int] | None], Callable[[], None]]:
        """An emit that appends to the buffer of the only stream, and what makes all of its calls ``other``'s."""
        task_output, rows = self._task_output, only.rows.values
        append = rows.append
        thread = get_ident()

        def emit(
            values: Sequence[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_ids: bool = False,
        ) -> list[int] | None:
            if (
                stream != "default"
                or anchors is not None
                or direct_task is not None
                or need_task_ids
                or get_ident() != thread
            ):
                return other(values, stream, anchors, direct_task, need_task_ids)
            append(values if type(values) is tuple else tuple(values) if type(values) is list else own(values))
            if len(rows) >= task_output.row_limit:
                self.overflow()
            return None

        def none_is_plain() -> None:
            nonlocal thread
            thread = NO_THREAD

        return emit, none_is_plain

    def emit(
        self,
        values: Sequence[Any],
        stream: str,
        current: int,
        anchors: Sequence[Tuple] | None,
        direct_task: int | None,
        need_task_ids: bool,
    ) -> list[int] | None:
        """The emits that are not the plain one."""
        self._user_code.check_thread()
        task_output = self._task_output
        with self._user_code.lock:
            mark: int | Anchors = current if anchors is None else self._anchors(anchors)
            if isinstance(mark, tuple):
                self.anchoring.mixed = True
            buffer = task_output.buffer(stream)
            rows = buffer.rows
            self.anchoring.mark(rows)
            rows.unfold()
            values, chosen = own(values), need_task_ids or self.hooks is not None
            tasks = task_output.emit(buffer, values, mark, direct_task, chosen=chosen)
            if len(rows.values) >= task_output.row_limit:
                self.overflow()
        if self.hooks is not None:
            self.hooks.emitted(values, stream, list(tasks))
        return list(tasks) if need_task_ids else None

    def emit_part(self, part: Part, stream: str, current: int, anchors: Sequence[Tuple] | None) -> Mapping[int, int]:
        """Many rows, which hooks do not see; how many each task gets, if that is wanted."""
        with self._user_code.lock:
            mark: int | Anchors = current if anchors is None else self._anchors(anchors)
            if isinstance(mark, tuple):
                self.anchoring.mixed = True
            buffer = self._task_output.buffer(stream)
            self.anchoring.mark(buffer.rows)
            counts = self._task_output.emit_part(buffer, part, [mark] * len(part.rows))
            if len(buffer.rows.values) >= self._task_output.row_limit:
                self.overflow()
            return counts

    def emit_columns(self, batch: Any, stream: str, anchors: Any, current: int) -> None:
        """Columns leave at once, after the rows emitted before; with hooks, which see each row, they leave as rows."""
        self._user_code.check_thread()
        with self._user_code.lock:
            batch = self._task_output.checked_columns(stream, batch)
        column_anchors = column_anchors_of(anchors, self.batch, current, batch.num_rows, auto=self._bolt.auto_anchor)
        if self.hooks is not None:
            for place, values in enumerate(ColumnRows(batch)):
                joined = [] if column_anchors is None else column_anchors.anchors_of(place)
                self.emit(values, stream, UNANCHORED, [Tuple(b.rows[i], i, b) for b, i in joined], None, False)
            return
        with self._user_code.lock:
            self.absorb()
            self.send()
            self._task_output.emit_columns(stream, batch, column_anchors, self.overflow)

    def _anchors(self, anchors: Sequence[Tuple]) -> int | Anchors:
        try:
            for tup in anchors:
                if closed(tup._batch, tup._index):
                    raise UserError(
                        f"{self._env.task.name}: emit anchored to tuple {tup.id} of {tup.component}, "
                        "which is acked or failed already",
                        hint="set auto_ack = False and ack it after the emit",
                    )
            if len(anchors) == 1 and anchors[0]._batch is self.batch:
                return anchors[0]._index
            return tuple(t for t in anchors if isinstance(t._batch, InputBatch)) or UNANCHORED
        except (AttributeError, TypeError) as error:
            what = f"anchors= takes a list of tuples, not {printable(anchors, 200)}"
            raise Misuse(what, hint="emit(values, anchors=[tup])") from error

    # --- output -----------------------------------------------------------------------------------------------

    @property
    def unsent(self) -> bool:
        """Rows, acks or fails."""
        return self.acking.waiting or self._task_output.waiting > 0

    def send(self) -> None:
        """Rows first: they add edges to what the acks say."""
        self.acks_left = self.send_rows()
        self.processed = 0
        self._send_acks(self.acking.take())

    def _send_acks(self, settled: Settled) -> None:
        for message in settled.messages():
            self._env.output.put(message)

    def send_rows(self, part: StreamBuffer | None = None) -> float:
        """Without the acks; returns when that was done.

        What a submitted function emits cancels the task's rest, which begins again after it.
        """
        self._env.observer.leaving(*self._task_output.on_its_way(part))
        rests_again = self._reporter.markers.resting and self._task_output.waiting > 0
        self.flush_rows(part)
        if rests_again:
            self._reporter.rest()
        if part is None:
            self.anchoring.restart(self.batch, self._task_output.buffers.values())
        return self._env.clock()

    def flush_rows(self, part: StreamBuffer | None = None) -> None:
        """What was emitted after the end is given up."""
        if dropped := self._sending.flush_rows(self, part):
            self._reporter.given_up += dropped

    def overflow(self) -> None:
        """Inside one long call."""
        self._sending.overflow(self)

    # --- in the middle of a call ------------------------------------------------------------------------------

    def send_inside(self) -> bool:
        """First of all it takes the acks: of a tuple acked later, rows may be anchored to it that do not leave yet."""
        if not self.unsent or not self._sending.may_send_inside:
            return False
        acks, whole, only = self.acking.take_acks(), self.anchoring, self._sending.only
        try:
            if only is None:
                self.send_rows()
            else:
                part, gone = only.part(len(only.rows.values)), only.rows.gone
                self.anchoring = whole.part(gone, gone + len(part))
                self.send_rows(part)
        except BaseException:
            self.acking.put_back(acks)
            raise
        finally:
            self.anchoring = whole
        self._send_acks(self.acking.take(acks))
        return True

    def absorb(self) -> None:
        """Rows that have left in the middle of a call wait no more, nor do their anchors."""
        only = self._sending.only
        if only is not None and only.rows.gone:
            self.anchoring.cut(only.rows.gone)
            only.rows.cut()

    # --- origins ----------------------------------------------------------------------------------------------

    def trees(self, buffer: StreamBuffer, size: int) -> Trees | None:  # noqa: ARG002 -- a spout needs the size
        """The trees of the rows' anchors."""
        trees, tracing = self.anchoring.trees(buffer), self._env.tracing
        if tracing is not None and trees is not None:
            tracing.anchored(trees, partial(self.anchoring.anchors_of, buffer))
        return trees

    def ahead(self, message: OutMessage, picked: Int | None, trees: Trees) -> None:
        """A bolt begins no trees."""

    def anchored(self, buffer: StreamBuffer, trees: Trees) -> None:
        """The new edges hang on the anchors."""
        self.anchoring.anchored(buffer, trees)

    @property
    def gives_up(self) -> bool:
        """See :class:`ardea.heron_instance.dispatch.Origins`."""
        return True

    def refused(self, buffer: StreamBuffer, row: int, error: EncodingError) -> None:
        """Fails the tuples that the row was anchored to, although acked: acks leave after what was emitted before."""
        origin = "not anchored"
        for batch, index in self.anchoring.take_out(buffer, row):
            origin = f"while processing tuple {batch.id_of(index)} of {batch.component}"
            self.acking.fail_again(batch, index)
        self._reporter.given_up += 1
        self._sending.refuse(error, origin)
