"""Many rows emitted by one call: what a loop of emits does, without the cost of a call for each row.

Rows that are read without running an author's code are appended a part at a time; all others as they are read, so that
what an iterator emits itself, raises or waits for finds the same rows as in a loop.  A part ends where an emit would
make a flush; where an iterator emits itself, as many rows later as it has emitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice, repeat
from threading import get_ident
from typing import Any

from ardea.collectors import RowIds
from ardea.component import overrides
from ardea.heron_instance.bolt_rows import BoltRows
from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.environment import NO_THREAD
from ardea.heron_instance.long_calls import UserCode
from ardea.heron_instance.output import Part, TaskOutput
from ardea.heron_instance.parcels import OPEN, RowParcel
from ardea.heron_instance.row_calls import Calls, Emit
from ardea.heron_instance.runner import Parts
from ardea.heron_instance.sendable import own
from ardea.heron_instance.spout_rows import SpoutRows
from ardea.tuples import Tuple

Counts = Mapping[int, int]

AT_REST = frozenset({list, tuple, type({}.items())})
"""Iterables that run no code of an author's while they are read."""
_IDS_AT_REST = frozenset({list, tuple, range})


class BoltMany:
    """``emit_many`` of one bolt task, whose emit is that of ``rows`` or the author's own.

    ``none_is_plain`` makes all calls of it the longer ones, past the hooks.
    """

    def __init__(self, parts: Parts, rows: BoltRows, calls: Calls, only: RowParcel | None) -> None:
        """``only``: of the only stream, whose rows need no marks."""
        component = parts.env.component
        self._task_output, self._user_code = parts.task_output, parts.user_code
        self._rows, self._calls = rows, calls
        self._own_emit: Emit | None = component.emit if overrides(type(component), "emit") else None
        self.emit_many: Callable[..., Counts | None] = self._emit_many
        self.none_is_plain: Callable[[], None] = lambda: None
        if only is not None and self._own_emit is None:
            self.emit_many, self.none_is_plain = self._plain(only)

    def _plain(self, parcel: RowParcel) -> tuple[Callable[..., Counts | None], Callable[[], None]]:
        """What appends the rows of a call to the only stream."""
        task_output, append_many = self._task_output, self._appender(parcel)
        values, called, thread = parcel.values, parcel.calls.append, get_ident()

        def emit_many(
            rows: Iterable[Any],
            stream: str = "default",
            anchors: Sequence[Tuple] | None = None,
            direct_task: int | None = None,
            need_task_counts: bool = False,
            *,
            head: tuple[Any, ...] = (),
        ) -> Counts | None:
            told = stream != "default" or anchors is not None or direct_task is not None or need_task_counts or head
            if told or get_ident() != thread:
                return self._emit_many(rows, stream, anchors, direct_task, need_task_counts, head=head)
            kind, start = type(rows), len(values)
            if kind is list and 0 < len(rows) < task_output.row_limit - start:  # type: ignore[arg-type]
                values.extend([row if type(row) is tuple else own(row) for row in rows])
                called([start, len(values), 0])
            else:
                append_many(rows, kind)
            return None

        def none_is_plain() -> None:
            nonlocal thread
            thread = NO_THREAD

        return emit_many, none_is_plain

    def _appender(self, parcel: RowParcel) -> Callable[[Iterable[Any], type], None]:
        task_output, values, calls, overflow = self._task_output, parcel.values, parcel.calls, self._rows.overflow
        append, extend = values.append, values.extend

        def append_many(rows: Iterable[Any], kind: type) -> None:
            left, first, more = iter(rows), 0, True
            while more:
                start, flushes = len(values), parcel.flushes
                room = task_output.row_limit - start
                part = islice(left, room if room > 0 else 1)
                calls.append(call := [start, OPEN, first])
                try:
                    if kind is zip:
                        extend(part)  # it gives tuples
                    elif kind in AT_REST:
                        extend([row if type(row) is tuple else own(row) for row in part])
                    else:
                        for row in part:
                            append(row if type(row) is tuple else own(row))
                finally:
                    call[1] = end = len(values)
                    if end == start:
                        parcel.called(call)
                more = parcel.flushes != flushes  # an iterator emits, too
                if end >= task_output.row_limit and (end > start or more):
                    more = True
                    overflow()
                first += room

        return append_many

    def _emit_many(
        self,
        rows: Iterable[Any],
        stream: str = "default",
        anchors: Sequence[Tuple] | None = None,
        direct_task: int | None = None,
        need_task_counts: bool = False,
        *,
        head: tuple[Any, ...] = (),
    ) -> Counts | None:
        """The calls that are not the plain one."""
        self._user_code.check_thread()
        counts: Counter[int] | None = Counter() if need_task_counts else None
        one_by_one = direct_task is not None or self._rows.hooks is not None or type(rows) not in AT_REST
        if self._own_emit is not None:
            options = _given(stream, direct_task, need_task_counts, anchors=anchors)
            _each(partial(self._own_emit, **options), _behind(head, rows), counts)
        elif one_by_one:
            emit, mark = self._rows.emit, self._calls.mark

            def emit_one(row: Any) -> list[int] | None:
                return emit(row, stream, mark, anchors, direct_task, need_task_counts)

            _each(emit_one, _behind(head, rows), counts, self._task_output.buffers.get(stream), self._user_code)
        else:
            mark = self._calls.mark
            for part in _parts(rows, self._task_output, stream, Part([], head=head, chosen=need_task_counts)):
                told = self._rows.emit_part(part, stream, mark, anchors)
                if counts is not None:
                    counts.update(told)
        return counts


class SpoutMany:
    """``emit_many`` of one spout task, whose emit is that of ``rows`` or the author's own; likewise."""

    def __init__(self, parts: Parts, rows: SpoutRows) -> None:
        component, only = parts.env.component, parts.sending.only
        self._name = parts.env.task.name
        self._task_output, self._user_code = parts.task_output, parts.user_code
        self._rows = rows
        self._own_emit: Emit | None = component.emit if overrides(type(component), "emit") else None
        self.emit_many: Callable[..., Counts | None] = self._emit_many
        self.none_is_plain: Callable[[], None] = lambda: None
        if only is not None and self._own_emit is None:
            self.emit_many, self.none_is_plain = self._plain(only.rows)

    def _plain(self, parcel: RowParcel) -> tuple[Callable[..., Counts | None], Callable[[], None]]:
        """What appends the rows of a call, and their ids, to the only stream."""
        task_output, append_many = self._task_output, self._append
        values, marks, called, thread = parcel.values, parcel.marks, parcel.calls.append, get_ident()

        def emit_many(
            rows: Iterable[Any],
            tup_ids: Iterable[Any] | None = None,
            stream: str = "default",
            direct_task: int | None = None,
            need_task_counts: bool = False,
        ) -> Counts | None:
            if stream != "default" or direct_task is not None or need_task_counts or get_ident() != thread:
                return self._emit_many(rows, tup_ids, stream, direct_task, need_task_counts)
            start, count = len(values), len(rows) if type(rows) is list else 0
            at_rest = tup_ids is None or (type(tup_ids) in _IDS_AT_REST and len(tup_ids) == count)  # type: ignore[arg-type]
            if 0 < count < task_output.row_limit - start and at_rest:
                values.extend([row if type(row) is tuple else own(row) for row in rows])
                marks.extend(repeat(None, count) if tup_ids is None else tup_ids)
                called([start, start + count, 0])
            else:
                append_many(parcel, rows, RowIds(rows, tup_ids, self._name), at_rest=_at_rest(rows, tup_ids))
            return None

        def none_is_plain() -> None:
            nonlocal thread
            thread = NO_THREAD

        return emit_many, none_is_plain

    def _emit_many(
        self,
        rows: Iterable[Any],
        tup_ids: Iterable[Any] | None = None,
        stream: str = "default",
        direct_task: int | None = None,
        need_task_counts: bool = False,
    ) -> Counts | None:
        """The calls that are not the plain one."""
        self._user_code.check_thread()
        counts: Counter[int] | None = Counter() if need_task_counts else None
        ids = RowIds(rows, tup_ids, self._name)
        one_by_one = direct_task is not None or self._rows.hooks is not None or not _at_rest(rows, tup_ids)
        if self._own_emit is not None:
            own_emit = partial(self._own_emit, **_given(stream, direct_task, need_task_counts))
            _each(own_emit if tup_ids is None else lambda row: own_emit(row, tup_id=ids.next()), rows, counts)
        elif one_by_one:
            emit, next_id = self._rows.emit, ids.next

            def emit_one(row: Any) -> list[int] | None:
                return emit(row, next_id(), stream, direct_task, need_task_counts)

            _each(emit_one, rows, counts, self._task_output.buffers.get(stream), self._user_code)
        else:
            for part in _parts(rows, self._task_output, stream, Part([], chosen=need_task_counts)):
                known = ids.take(len(part.rows))
                missing = len(part.rows) - len(known)
                del part.rows[len(known) :]
                told = self._rows.emit_part(part, known, stream)
                if counts is not None:
                    counts.update(told)
                ids.check(missing)
        return counts

    def _append(self, parcel: RowParcel, rows: Iterable[Any], ids: RowIds, *, at_rest: bool) -> None:
        """To the only stream.  Marks follow their rows: the sender leaves what has none yet."""
        task_output, values, first, left, more = self._task_output, parcel.values, 0, iter(rows), True
        while more:
            start = len(values)
            room = max(1, task_output.row_limit - start)
            flushes, call = parcel.flushes, parcel.call(first)
            try:
                if at_rest:
                    part = own_rows(islice(left, room))
                    known = ids.take(len(part))
                    values.extend(part[: len(known)])
                    parcel.marks.extend(known)
                    ids.check(len(part) - len(known))
                else:
                    _append_read(parcel, islice(left, room), ids)
            finally:
                parcel.called(call)
            more = parcel.flushes != flushes
            if len(values) >= task_output.row_limit and (len(values) > start or more):
                more = True
                self._rows.overflow()
            first += room


def _append_read(parcel: RowParcel, rows: Iterable[Any], ids: RowIds) -> None:
    """Rows between which an author's code may run."""
    append, mark, left = parcel.values.append, parcel.marks.append, ids.left
    if left is None:
        for row in rows:
            append(row if type(row) is tuple else own(row))
            mark(None)
        return
    for row in rows:
        tup_id = next(left, ids.NONE)
        if tup_id is ids.NONE:
            ids.check(1)
        append(row if type(row) is tuple else own(row))
        mark(tup_id)


def own_rows(rows: Iterable[Any]) -> list[Any]:
    """Rows as they are now."""
    return [row if type(row) is tuple else own(row) for row in rows]


def _at_rest(rows: Iterable[Any], tup_ids: Iterable[Any] | None) -> bool:
    return type(rows) in AT_REST and (tup_ids is None or type(tup_ids) in _IDS_AT_REST)


def _parts(rows: Iterable[Any], task_output: TaskOutput, stream: str, like: Part) -> Iterator[Part]:
    """Rows at rest, a part at a time."""
    first, left = 0, iter(rows)
    while part := own_rows(islice(left, task_output.room(stream))):
        yield Part(part, first, like.head, like.chosen)
        first += len(part)


def _given(stream: str, direct_task: int | None, need_task_counts: bool, **more: Any) -> dict[str, Any]:
    """The options of an emit that are not its defaults: an author's own may know no others."""
    options = {"stream": stream, "direct_task": direct_task, "need_task_ids": need_task_counts, **more}
    return {name: v for name, v in options.items() if v is not None and v is not False and v != "default"}


def _behind(head: tuple[Any, ...], rows: Iterable[Any]) -> Iterable[Any]:
    return ((*head, *row) for row in rows) if head else rows


def _each(
    emit_one: Callable[[Any], list[int] | None],
    rows: Iterable[Any],
    counts: Counter[int] | None,
    buffer: StreamBuffer | None = None,
    user_code: UserCode | None = None,
) -> None:
    """Emits rows one by one.  ``buffer`` is where they will wait: each has a place in the call there."""
    if buffer is None or user_code is None:
        for row in rows:
            tasks = emit_one(row)
            if counts is not None:
                counts.update(tasks or ())
        return
    parcel, call, flushes = buffer.rows, None, -1
    try:
        for place, row in enumerate(rows):
            if parcel.flushes != flushes:
                with user_code.lock:  # the sender may flush, too
                    flushes, call = parcel.flushes, parcel.call(place)
            tasks = emit_one(row)
            if counts is not None:
                counts.update(tasks or ())
    finally:
        if call is not None:
            with user_code.lock:
                parcel.called(call)
