"""``topology.debug`` and ``ardea debug``: a sample of what a task emits, in its log."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ardea import logs
from ardea.shortened import shortened

PER_SECOND = 10
"""Lines that a task writes at most."""


class Emitted(Protocol):
    """Rows of one stream that are about to leave (:class:`ardea.heron_instance.buffers.StreamBuffer`)."""

    plan: Any
    columns: Any

    def __len__(self) -> int: ...
    @property
    def parcel(self) -> Any:
        """Their values."""
        ...


class EmitLog:
    """Called at each flush while it is on; knows when it is over."""

    def __init__(self, task: str, clock: Callable[[], float], *, always: bool, form: logs.Format = "text") -> None:
        """``always``: ``topology.debug`` is set for this component.  ``form``: as the topology's other logs have it."""
        self._clock = clock
        self._until = math.inf if always else -math.inf
        self._tokens = 0.0
        self._looked = -math.inf
        self._passed_over = 0
        # Apart from all other loggers: however an author sets these up, `ardea debug` has to find the lines.
        self._logger = logging.Logger(f"{task}.emits", logging.INFO)
        self._logger.addHandler(logs.handler(form))

    @property
    def on(self) -> bool:
        """Whether anything is to be logged now."""
        return self._clock() < self._until

    def extend(self, seconds: int) -> None:
        """On for so long from now, at least."""
        self._until = max(self._until, self._clock() + seconds)

    def look(self, buffers: Iterable[Emitted]) -> None:
        """Logs as many rows as the time since the last ones allows, spread evenly over each stream's."""
        now = self._clock()
        self._tokens = min(float(PER_SECOND), self._tokens + (now - self._looked) * PER_SECOND)
        self._looked = now
        for buffer in buffers:
            count = len(buffer)
            shown = range(0, count, math.ceil(count / int(self._tokens))) if count and self._tokens >= 1 else range(0)
            for index in shown:
                before = f" ({self._passed_over:,} others before)" if self._passed_over else ""
                self._passed_over = 0
                self._logger.info("%s %s%s", buffer.plan.name, _shown(buffer, index), before)
            self._tokens -= len(shown)
            self._passed_over += count - len(shown)


def _shown(buffer: Emitted, index: int) -> str:
    """Also where a row cannot be read: Python lacks some of Arrow's times, and what is no row is refused later."""
    try:
        return shortened(_row(buffer, index))
    except Exception:
        return "(cannot be shown)"


def _row(buffer: Emitted, index: int) -> Sequence[Any]:
    """Rows of an Arrow batch may not have been read."""
    if buffer.columns is not None:
        return [column[index].as_py() for column in buffer.columns.batch.columns]
    row: Sequence[Any] = buffer.parcel.whole[index]
    return row if isinstance(row, (list, tuple)) else [row]
