"""What a simulated topology did, kept for the test that asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ardea.heron_instance.buffers import StreamBuffer
from ardea.heron_instance.parcels import ColumnParcel
from ardea.heron_instance.trees import Row, plain
from ardea.plan.physical import TaskPlan
from ardea.protocol.arrow import rows_of
from ardea.protocol.columns import ColumnRows
from ardea.tuples import Tuple

Runs = Sequence[tuple[StreamBuffer, int]]


class Emitted(NamedTuple):
    """A row that a component emitted.  ``tup_id``: a spout's; what the executor sends again stands here once."""

    values: tuple[Any, ...]
    stream: str
    task: int
    tup_id: Any = None


class Received(NamedTuple):
    """A tuple that a bolt processed.  ``task`` is the bolt's, ``source`` the emitting one."""

    values: tuple[Any, ...]
    component: str
    stream: str
    source: int
    task: int


class Raised(NamedTuple):
    """An exception of a bolt's code that failed a tuple.

    ``values`` are the tuple's (of a whole batch: those of its first), ``tup_id`` that of the spout's row that it comes
    from, None if that is not tracked.
    """

    task: str
    error: Exception
    values: tuple[Any, ...]
    tup_id: Any


@dataclass(slots=True)
class Record:
    """Everything so far, by component; of processes that died too.

    ``failed`` are the trees that a bolt failed, ``timed_out`` and ``lost`` those that ended so; all by ``tup_id``, in
    the order in which the spouts heard of it.  ``exceptions`` failed tuples; ``errors``, (task, exception), are the
    others: they ended a process, took the topology back to its last snapshot, or came of ``close``.  ``tup_ids``: of
    every tree there was, by its root.
    """

    emitted: dict[str, list[Emitted]] = field(default_factory=lambda: defaultdict(list))
    received: dict[str, list[Received]] = field(default_factory=lambda: defaultdict(list))
    acked: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    timed_out: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    lost: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    exceptions: list[Raised] = field(default_factory=list)
    errors: list[tuple[str, BaseException]] = field(default_factory=list)
    tup_ids: dict[int, Any] = field(default_factory=dict)
    ticks: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    @property
    def first_error(self) -> BaseException | None:
        """The first exception of the author's code, whatever came of it."""
        return next((raised.error for raised in self.exceptions), next((error for _, error in self.errors), None))

    @property
    def last_error(self) -> str:
        """The last one in a few words; empty: there was none."""
        if self.errors:
            task, error = self.errors[-1]
            return f"{task} raised {error!r}"
        if self.exceptions:
            raised = self.exceptions[-1]
            return f"{raised.task} raised {raised.error!r} on {raised.values!r}"
        return ""

    def tuples(self, component: str, stream: str = "default") -> list[tuple[Any, ...]]:
        """The values of all rows that a component emitted on a stream."""
        return [row.values for row in self.emitted[component] if row.stream == stream]

    def inputs(self, component: str) -> list[tuple[Any, ...]]:
        """The values of all tuples that a bolt processed."""
        return [row.values for row in self.received[component]]

    def left(self, task: TaskPlan, buffers: Iterable[StreamBuffer], runs: Runs, *, ids: bool) -> None:
        """A task flushes what waits in buffers; ``ids``: the marks there are message ids."""
        log = self.emitted[task.component]
        for values, stream, mark in _in_order(buffers, runs, ids=ids):
            if type(mark) is not Row:
                row = tuple(values) if isinstance(values, Iterable) else (values,)  # such a one is refused
                log.append(Emitted(row, stream, task.task, mark if ids else None))

    def processed(self, component: str, task: int, tup: Tuple) -> None:
        """A task's ``process`` is called."""
        self.received[component].append(Received(tup.values, tup.component, tup.stream, tup.task, task))


def readable(rows: Sequence[Any]) -> Sequence[Any]:
    """The same; None stands for a value of a record batch that Python has none for."""
    return rows_of(rows.batch, gaps=True) if isinstance(rows, ColumnRows) else rows


def _in_order(buffers: Iterable[StreamBuffer], runs: Runs, *, ids: bool) -> Iterator[tuple[Sequence[Any], str, Any]]:
    """(values, stream, mark) of the rows that wait, as they were emitted."""
    runs = runs if len(runs) > 1 else [(buffer, 0) for buffer in buffers]
    ends: dict[int, int] = {}
    spans = []
    for buffer, start in reversed(runs):
        spans.append((buffer, start, ends.get(id(buffer), len(buffer))))
        ends[id(buffer)] = start
    for buffer, start, end in reversed(spans):
        rows = readable(buffer.parcel.whole)
        marks = buffer.rows.marks if buffer.columns is None else _marks(buffer.columns, ids=ids)
        for place in range(start, end):
            mark = marks[place] if place < len(marks) else None  # a bolt's may come with the flush
            yield rows[place], buffer.plan.name, mark


def _marks(parcel: ColumnParcel, *, ids: bool) -> list[Any]:
    """A spout's message ids, or what is sent again."""
    columns = parcel.origin
    if not ids or columns is None:
        return []
    return list(columns.rows()) if columns.attempt else plain(columns.ids)
