"""How a bolt that reads rows is called: once for each tuple, or once for each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, Protocol, cast

from ardea.calls import ran
from ardea.component import Bolt
from ardea.errors import EncodingError, UserError
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.environment import Environment
from ardea.heron_instance.hooks import Hooks
from ardea.heron_instance.input_batch import UNANCHORED, WHOLE_BATCH, InputBatch, decode_columns
from ardea.heron_instance.runner import Parts
from ardea.plan.logical import StreamPlan
from ardea.protocol.arrow import rows_of
from ardea.protocol.values import RowCodec
from ardea.protocol.wire_pb2 import ARROW, Header
from ardea.tuples import Tuple, TupleBatch

NOBODY = Tuple((), UNANCHORED, None)
"""The current tuple outside of ``process``: what is emitted is marked with its number."""
Emit = Callable[..., list[int] | None]


class Calls(Protocol):
    """One way to call a bolt; ``emit`` and ``emit_batch`` are anchored to what the present call is about."""

    @property
    def emit(self) -> Emit:
        """The bolt's, once, as it may keep it."""

    @property
    def mark(self) -> int:
        """Of what is emitted now without anchors of its own."""

    def emit_batch(self, batch: Any, stream: str, anchors: Any) -> None:
        """The bolt's, of columns."""

    def begun(self, hooks: Hooks | None) -> None:
        """``initialize`` has made of the bolt what it is; these hooks are called, too."""

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """What has arrived; raises ProtocolError for bytes that are not rows of the stream."""

    def run(self, batch: InputBatch, start: int, end: int, /) -> int:
        """Calls it for these rows; returns where it has got to."""

    def blamed(self, start: int, end: int) -> range:
        """Which of these rows fail if the call of them has raised."""

    def stop(self) -> None:
        """No more calls, once the present one returns."""


class RowCalls:
    """``process``, for one tuple after the other."""

    def __init__(self, parts: Parts, rows: BoltRows) -> None:
        self._parts, self._env = parts, parts.env
        self._bolt = cast("Bolt", parts.env.component)
        self._user_code = parts.user_code
        self._rows = rows
        self._codec = RowCodec(parts.env.settings.pickle)
        self._process: Callable[[Tuple], None]
        self._auto_anchor = True
        self._raised_at = 0
        self._plain = parts.sending.only is not None
        self._none_is_plain: Callable[[], None] = lambda: None
        emitted = [] if parts.sending.only is None else parts.sending.only.rows.values
        self.run, self.stop, self._current = self._loop(emitted)
        self.emit: Emit = self._emit
        if parts.sending.only is not None:
            self.emit, self._none_is_plain = rows.plain_emit(parts.sending.only, self._emit)

    def _loop(
        self, emitted: list[Any]
    ) -> tuple[Callable[[InputBatch, int, int], int], Callable[[], None], Callable[[], int]]:
        """Returns what calls ``process`` for rows, what stops it, and what gives the number of the current tuple."""
        current = NOBODY
        inputs: list[tuple[Any, ...]] = []  # of the present turn; none are left once it is told to end

        def run(batch: InputBatch, start: int, end: int) -> int:
            nonlocal current, inputs
            process, anchoring = self._process, self._rows.anchoring
            if batch.traces and self._env.tracing is not None:
                process = self._env.tracing.process(process, batch)
            marked = anchoring.run(len(emitted), start) if self._plain and self._auto_anchor else None
            try:
                inputs = batch.rows[start:end] if type(batch.rows) is list else list(batch.rows[start:end])
                # One at a time: who is done with a tuple leaves its memory, still in the cache, to the next.
                tuples = map(Tuple, inputs, range(start, end), repeat(batch))
                with self._user_code:
                    if marked is not None:
                        ended = marked.ends.append
                        for current in tuples:
                            process(current)
                            ended(len(emitted))
                    else:
                        for current in tuples:
                            process(current)
                return start if current is NOBODY else current._index + 1
            except BaseException:
                self._raised_at = current._index
                raise
            finally:
                current, inputs = NOBODY, []
                if marked is not None:
                    anchoring.close(marked, len(emitted))

        def stop() -> None:
            inputs.clear()

        return run, stop, lambda: current._index

    def _emit(
        self,
        values: Sequence[Any],
        stream: str = "default",
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        mark = self._current() if self._auto_anchor else UNANCHORED
        return self._rows.emit(values, stream, mark, anchors, direct_task, need_task_ids)

    @property
    def mark(self) -> int:
        """See :class:`Calls`, as for all of these."""
        return self._current() if self._auto_anchor else UNANCHORED

    def emit_batch(self, batch: Any, stream: str, anchors: Any) -> None:
        """At once."""
        self._rows.emit_columns(batch, stream, anchors, self._current())

    def begun(self, hooks: Hooks | None) -> None:
        """The file of the current tuple is told of each tuple first."""
        self._auto_anchor = self._bolt.auto_anchor
        usual = self._around(self._bolt.process, hooks)
        self._process = self._around(self._looking(usual), hooks)
        if hooks is not None:
            self._none_is_plain()

    def _around(self, process: Callable[[Tuple], None], hooks: Hooks | None) -> Callable[[Tuple], None]:
        if self._env.current_tuple is not None and self._env.current_tuple.armed:
            process = self._env.current_tuple.recording(process)
        return process if hooks is None else hooks.process(process)

    def _looking(self, usual: Callable[[Tuple], None]) -> Callable[[Tuple], None]:
        """``process`` for the first slice of time: somebody looks at what it returns."""
        as_written: Callable[[Tuple], object] = self._bolt.process

        def process(tup: Tuple) -> None:
            look(self._parts, "process", as_written(tup))
            self._process = usual

        return process

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Rows."""
        return read_rows(self._env, self._codec, header, frames, source, stream)

    def blamed(self, start: int, end: int) -> range:  # noqa: ARG002
        """The one whose call it was."""
        return range(self._raised_at, self._raised_at + 1)


class BatchCalls:
    """``process_batch``."""

    def __init__(self, parts: Parts, rows: BoltRows) -> None:
        self._parts, self._env = parts, parts.env
        self._bolt = cast("Bolt", parts.env.component)
        self._user_code = parts.user_code
        self._rows = rows
        self._only = parts.sending.only
        self._codec = RowCodec(parts.env.settings.pickle)
        self._process_batch: Callable[[Sequence[Tuple]], None]
        self._auto_anchor = True
        self._current = UNANCHORED
        self._none_is_plain: Callable[[], None] = lambda: None
        self.emit: Emit = self._emit
        if self._only is not None:
            self.emit, self._none_is_plain = rows.plain_emit(self._only, self._emit)

    def _emit(
        self,
        values: Sequence[Any],
        stream: str = "default",
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        mark = self._current if self._auto_anchor else UNANCHORED
        return self._rows.emit(values, stream, mark, anchors, direct_task, need_task_ids)

    @property
    def mark(self) -> int:
        """See :class:`Calls`, as for all of these."""
        return self._current if self._auto_anchor else UNANCHORED

    def emit_batch(self, batch: Any, stream: str, anchors: Any) -> None:
        """At once."""
        self._rows.emit_columns(batch, stream, anchors, self._current)

    def begun(self, hooks: Hooks | None) -> None:
        """Hooks see tuple by tuple."""
        self._auto_anchor = self._bolt.auto_anchor
        usual = self._around(self._bolt.process_batch, hooks)
        self._process_batch = self._around(self._looking(usual), hooks)
        if hooks is not None:
            self._none_is_plain()

    @staticmethod
    def _around(call: Callable[[Sequence[Tuple]], None], hooks: Hooks | None) -> Callable[[Sequence[Tuple]], None]:
        return call if hooks is None else hooks.process_batch(call)

    def _looking(self, usual: Callable[[Sequence[Tuple]], None]) -> Callable[[Sequence[Tuple]], None]:
        """``process_batch`` for the first time."""
        as_written: Callable[[Sequence[Tuple]], object] = self._bolt.process_batch

        def process_batch(rows: Sequence[Tuple]) -> None:
            look(self._parts, "process_batch", as_written(rows))
            self._process_batch = usual

        return process_batch

    def read(self, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan) -> InputBatch:
        """Rows."""
        return read_rows(self._env, self._codec, header, frames, source, stream)

    def run(self, batch: InputBatch, start: int, end: int) -> int:
        """One call."""
        emitted, anchoring = None if self._only is None else self._only.rows.values, self._rows.anchoring
        marked = None if emitted is None or not self._auto_anchor else anchoring.run(len(emitted), WHOLE_BATCH)
        self._current, call = WHOLE_BATCH, self._process_batch
        if batch.traces and self._env.tracing is not None:
            call = self._env.tracing.calling(call, batch, start, end)
        try:
            with self._user_code:
                call(self._given(batch, start, end))
        finally:
            self._current = UNANCHORED
            if marked is not None and emitted is not None:
                anchoring.close(marked, len(emitted))
        return end

    def _given(self, batch: InputBatch, start: int, end: int) -> Any:
        """What the bolt gets."""
        return TupleBatch(batch.rows[start:end], batch)

    def blamed(self, start: int, end: int) -> range:
        """All."""
        return range(start, end)

    def stop(self) -> None:
        """There is one call only."""


def look(parts: Parts, method: str, returned: object) -> None:
    """At what a bolt's method has returned, which nobody reads, in its first calls: rows are warned of.

    Raises:
        Misuse: the call has done nothing.
    """
    ran(parts.env.component, method, returned)
    if isinstance(returned, list | tuple | dict):
        what = f"{parts.env.task.name}: {method}() returned {type(returned).__name__}, which nobody reads"
        parts.reporter.error = f"{what}: emit rows with self.emit(...)"
        parts.env.component.logger.warning("%s: emit rows with self.emit(...)", what)


def read_rows(
    env: Environment, codec: RowCodec, header: Header, frames: Sequence[bytes], source: str, stream: StreamPlan
) -> InputBatch:
    """A batch of rows; raises ProtocolError."""
    if header.codec != ARROW:
        rows: Sequence[tuple[Any, ...]] = codec.decode_headed(header.head, frames[0], len(stream.fields))
    else:
        try:
            rows = rows_of(decode_columns(frames[0], stream))
        except EncodingError as error:
            raise UserError(f"{env.task.name}, stream {stream.name} of {source}: {error.message}") from error
    return InputBatch(header, frames, rows, source, stream)
