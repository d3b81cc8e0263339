"""A price on the calls of a simulated component that do the work, and a note of each in the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ardea.component import overrides
from ardea.heron_instance.column_bolt import reads_columns
from ardea.plan.physical import TaskPlan
from ardea.testing.audit import Audit
from ardea.testing.record import Record, readable
from ardea.tuples import ColumnBatch, Tuple
from ardea.windows import Window, WindowBolt


def meter_spout(spout: Any, pay: Callable[[], None]) -> None:
    """``pay`` is called ahead of each ``next_tuple``."""
    call = spout.next_tuple

    def next_tuple() -> None:
        pay()
        call()

    spout.next_tuple = next_tuple


def _meter_windows(bolt: WindowBolt, pay: Callable[[], None]) -> None:
    on_windows = bolt.on_windows

    def seen(window: Window, keys: Sequence[Any], values: Sequence[Any]) -> None:
        for _ in keys:
            pay()
        on_windows(window, keys, values)

    bolt.on_windows = seen  # type: ignore[method-assign]


def _tuples(rows: Sequence[Tuple] | ColumnBatch) -> Sequence[Tuple]:
    if not isinstance(rows, ColumnBatch):
        return rows
    batch: Any = rows._batch
    return [Tuple(values, index, batch) for index, values in enumerate(readable(batch.rows))]


def meter_bolt(bolt: Any, pay: Callable[[], None], task: TaskPlan, record: Record, audit: Audit | None) -> None:
    """``pay`` is called for each tuple, timer and window, ahead of the call that it is for.

    Of the calls for tuples only the engine's are metered: a bolt may call its ``process`` for each tuple of a batch.
    """
    process, tick, timer = bolt.process, bolt.process_tick, bolt.on_timer
    columns = reads_columns(type(bolt))
    process_all = bolt.process_columns if columns else bolt.process_batch

    def seen(tup: Tuple) -> None:
        pay()
        record.processed(task.component, task.task, tup)
        if audit is not None:
            audit.processed(task.name, tup)

    def metered(tup: Tuple) -> object:
        seen(tup)
        return process(tup)

    def metered_all(rows: Sequence[Tuple] | ColumnBatch) -> object:
        for tup in _tuples(rows):
            seen(tup)
        return process_all(rows)

    def timed(name: str, key: Any, at: float) -> None:
        pay()
        timer(name, key, at)

    def ticked(tup: Tuple) -> None:
        record.ticks[task.component] += 1
        tick(tup)

    bolt.process_tick, bolt.on_timer = ticked, timed
    if isinstance(bolt, WindowBolt):
        _meter_windows(bolt, pay)
    if columns:
        bolt.process_columns = metered_all
    elif overrides(type(bolt), "process_batch"):
        bolt.process_batch = metered_all
    else:
        bolt.process = metered
