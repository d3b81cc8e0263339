"""The windows of a bolt's task: rows go in by key and stamp, and what is to be seen comes out (docs/windows.md)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ardea.heron_instance.runner import Parts
from ardea.heron_instance.window_keys import WindowKeys
from ardea.protocol.arrow import arrow, rows_of
from ardea.tuples import ColumnBatch, TupleBatch
from ardea.windows.bolt import LATE, WindowBolt
from ardea.windows.counted import Counted, Whole
from ardea.windows.kinds import MICROS, CountSliding, CountTumbling, Global, Regular, Session, TimeWindows
from ardea.windows.open_windows import AT_ONCE, Keyed, OpenWindows, Seen
from ardea.windows.panes import Panes
from ardea.windows.partial import PartialWindows
from ardea.windows.parts import Part, WithoutPart, apart
from ardea.windows.sessions import Sessions
from ardea.windows.stamps import micros, micros_of_column

Rows = Sequence[tuple[Any, ...]]


STEP = 0.005
"""Seconds of a step, about."""


class _Early(NamedTuple):
    """Windows that have had new rows, each with its key, and when they are seen for it, in seconds since 1970."""

    at: float
    windows: list[tuple[Any, Any]]


class Windowing:
    """Of one task."""

    def __init__(self, parts: Parts, bolt: WindowBolt) -> None:
        self._env, self._user_code, self._bolt = parts.env, parts.user_code, bolt
        self._counts = parts.env.instruments.windows
        self._tells_late = LATE in parts.task_output.buffers
        kind = bolt.windows
        self._event = kind.on is not None
        self._every = kind.early_seconds if isinstance(kind, TimeWindows | Global) else None
        self._early: deque[_Early] = deque()
        self._new: set[tuple[Any, Any]] = set()  # windows that are among those
        self._most = 16  # keys of a step
        self._keys = WindowKeys(parts.env)
        bolt._adding = self

    @cached_property
    def _open(self) -> OpenWindows:
        """Made once the state is there; of what is open then, nobody knows whether it has rows that were not seen."""
        found = self._opened()
        if self._every is not None and (waiting := [*found.open(self._time)]):
            self._new.update(waiting)
            self._early.append(_Early(self._env.context.now() + self._every, waiting))
        return found

    def _opened(self) -> OpenWindows:
        kind, table = self._bolt.windows, self._bolt._windows
        if isinstance(kind, Regular):
            return Panes(kind, table, self._time)
        if isinstance(kind, Session):
            return Sessions(kind, table)
        if isinstance(kind, Global):
            return Whole(kind, table)
        assert isinstance(kind, CountTumbling | CountSliding)
        return Counted(kind, table, self._keys.only)

    @property
    def _time(self) -> float:
        """By which windows end, in microseconds."""
        if self._event:
            return -math.inf if self._bolt.watermark is None else self._bolt.watermark * MICROS
        return self._env.context.now() * MICROS

    # --- rows -------------------------------------------------------------------------------------------------

    def add(self, rows: TupleBatch) -> None:
        """All of them; those that are late, or have no stamp, are put aside."""
        if rows.component in self._partial:
            rows, parts = _apart(rows)
            self._add_parts(parts)
            if not rows.rows:
                return
        kind, values, items, time = self._bolt.windows, rows.rows, self._bolt.windows.fold.items(rows), self._time
        keys = self._keys.of_rows(rows)
        if kind.on is None:
            stamps = np.full(len(values), 0 if not kind.timed else int(time), dtype=np.int64)
        else:
            place = rows.fields.index(kind.on)
            stamps, none = micros([row[place] for row in values], kind.stamps)
            if len(none):
                self._late([values[place] for place in none], "unstamped")
                there = np.delete(np.arange(len(values)), none).tolist()
                values, keys, items = ([some[place] for place in there] for some in (values, keys, items))
                stamps = stamps[there]
        if len(keys):
            late = self._open.add(keys, stamps, items, time)
            if len(late):
                self._late([values[place] for place in late], "late")
            if self._every is not None:
                self._expect_early(keys, stamps, time)
            self._see_all(self._open.at_once())

    @cached_property
    def _partial(self) -> frozenset[str]:
        """Inputs whose rows may have been put together."""
        logical = self._env.plan.logical
        inputs = {entry.component for entry in logical[self._env.task.component].inputs}
        return frozenset(name for name in inputs if issubclass(logical[name].cls, PartialWindows))

    def _add_parts(self, parts: TupleBatch) -> None:
        """Rows, each of which stands for several."""
        if not parts.rows:
            return
        kind, time, panes = self._bolt.windows, self._time, self._open
        assert isinstance(panes, Panes)
        assert kind.on is not None
        keys, place = self._keys.of_rows(parts), parts.fields.index(kind.on)
        stamps, _ = micros([row[place] for row in parts.rows], kind.stamps)
        found = [Part.decoded(row[-1]) for row in parts.rows]
        for late in panes.add_parts(keys, stamps, [part.value for part in found], time):
            self._counts.late += found[late].rows
        if self._every is not None:
            self._expect_early(keys, stamps, time)
        self._see_all(panes.at_once())

    def culprit(self, rows: TupleBatch) -> int | None:
        """The place of the first row that the fold cannot add to nothing; None: there is none."""
        fold, partial = self._bolt.windows.fold, rows.component in self._partial
        for place in range(len(rows)):
            if partial and rows.rows[place][-1] is not None:
                continue
            try:
                one = TupleBatch(rows.rows[place : place + 1], rows._batch)
                fold.put(fold.zero(), fold.items(one)[0])
            except Exception:
                return place
        return None

    def add_columns(self, columns: ColumnBatch) -> None:
        """As :meth:`add`, where nothing has to look at a single row."""
        numbers = np.arange(len(columns))  # of the rows in their message
        if columns.component in self._partial:
            columns, parts, numbers = _columns_apart(columns)
            self._add_parts(parts)
            if not len(columns):
                return
        kind, batch, time = self._bolt.windows, columns.batch, self._time
        keyed = self._keys.of_columns(columns)
        if kind.on is None:
            stamps = np.full(len(columns), int(time), dtype=np.int64)
        else:
            stamps, none = micros_of_column(columns[kind.on], kind.stamps)
            if len(none):
                self._late_columns(batch.take(arrow().array(none)), numbers[none], "unstamped")
                there = np.delete(np.arange(len(columns)), none)
                keyed = Keyed(keyed.keys, keyed.places[there])
                batch, stamps, numbers = batch.take(arrow().array(there)), stamps[there], numbers[there]
        panes = self._open
        assert isinstance(panes, Panes)
        if len(stamps):
            late = panes.add_columns(keyed, stamps, batch, time)
            if late:
                self._late_columns(batch.take(arrow().array(late)), numbers[late], "late")
            if self._every is not None:
                self._expect_early([keyed.keys[place] for place in keyed.places], stamps, time)
            self._see_all(self._open.at_once())

    @property
    def reads_columns(self) -> bool:
        """Whether rows that travel as columns are added as such."""
        return self._bolt.windows.reads_columns

    def _late(self, rows: Rows, why: str) -> None:
        self._refused(len(rows), why)
        if self._tells_late:
            self._bolt.emit_many(rows, stream=LATE)

    def _late_columns(self, batch: Any, numbers: Any, why: str) -> None:
        """As columns: Python need not have a value for what stands there."""
        self._refused(len(numbers), why)
        if self._tells_late:
            self._bolt.emit_batch(batch, LATE, numbers if self._bolt.auto_anchor else ())

    def _refused(self, rows: int, why: str) -> None:
        if why == "late":
            self._counts.late += rows
        else:
            self._counts.unstamped += rows

    def _expect_early(self, keys: Sequence[Any], stamps: Any, time: float) -> None:
        assert self._every is not None
        fresh = [each for each in dict.fromkeys(self._open.unseen(keys, stamps, time)) if each not in self._new]
        if fresh:
            self._new.update(fresh)
            self._early.append(_Early(self._env.context.now() + self._every, fresh))

    # --- what is to be seen -----------------------------------------------------------------------------------

    @property
    def behind(self) -> bool:
        """Whether there are windows that are over, and were not seen."""
        return self._open.due(self._time)

    def wait(self) -> float:
        """Seconds until something is due; infinity: that depends on rows, or on the watermark."""
        if self.behind:
            return 0.0
        now = self._env.context.now()
        early = self._early[0].at - now if self._early else math.inf
        return max(0.0, min(early, math.inf if self._event else self._open.next / MICROS - now))

    def fire(self, until: float) -> None:
        """What is due, until that time of the executor's clock."""
        env = self._env
        while self._early and self._early[0].at <= env.context.now() and env.clock() < until:
            windows = self._early[0].windows
            some = windows[-self._most :]
            del windows[-self._most :]
            if not windows:
                self._early.popleft()
            self._new.difference_update(some)
            with self._user_code:
                self._see_all(self._open.early(some))
        time = self._time
        while self._open.due(time) and env.clock() < until:
            self._timed_step(time)

    def _timed_step(self, time: float) -> None:
        """Of as many keys as the author's code can see in a few milliseconds."""
        began = self._env.clock()
        with self._user_code:
            keys = self._step(time, self._most)
        if not keys:
            return  # what was deleted says nothing of that code
        per_key = (self._env.clock() - began) / keys
        fits = AT_ONCE if per_key <= 0 else max(1, int(STEP / per_key))
        self._most = min(AT_ONCE, 2 * self._most, fits)

    def finish(self) -> None:
        """Nothing comes any more: what is open by the machine's clock, or by number, is seen as it is.

        Within user code, as is :meth:`add`.
        """
        while self._open.due(math.inf):
            self._step(math.inf, AT_ONCE)

    def _step(self, time: float, most: int) -> int:
        """Returns of how many keys windows were seen."""
        seen = self._open.step(time, most)
        if seen is None:
            return 0
        self._see_all([seen])
        return len(seen.keys)

    def _see_all(self, found: Iterable[Seen]) -> None:
        for seen in found:
            self._counts.fired[seen.window.firing] += len(seen.keys)
            keys = [None] * len(seen.keys) if self._keys.none else seen.keys
            self._bolt._ready_sees = True
            self._bolt.on_windows(seen.window, keys, seen.values)
            self._bolt._ready_sees = False


def _apart(rows: TupleBatch) -> tuple[TupleBatch, TupleBatch]:
    """Rows that are one, without the field of parts, and those that stand for several."""
    single, several = apart(rows.rows)
    return TupleBatch(single, WithoutPart(rows._batch)), TupleBatch(several, rows._batch)


def _columns_apart(columns: ColumnBatch) -> tuple[ColumnBatch, TupleBatch, Any]:
    """Likewise, and which rows are one."""
    batch = columns.batch
    single = batch.column(batch.num_columns - 1).is_null()
    several = rows_of(batch.filter(arrow().compute.invert(single)))
    rest = batch.filter(single).select(range(batch.num_columns - 1))
    numbers = np.flatnonzero(single.to_numpy(zero_copy_only=False))
    return ColumnBatch(rest, WithoutPart(columns._batch)), TupleBatch(several, columns._batch), numbers
