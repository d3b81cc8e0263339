"""The keys of rows that go to windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from ardea.heron_instance.environment import Environment
from ardea.protocol.dict_keys import are_keys, as_key
from ardea.tuples import ColumnBatch, TupleBatch
from ardea.windows.open_windows import Keyed

Rows = Sequence[tuple[Any, ...]]


class WindowKeys:
    """Of one task."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._of: dict[tuple[str, str], Callable[[Rows], Sequence[Any]]] = {}

    @cached_property
    def none(self) -> bool:
        """Whether no input has keys, and windows are the task's."""
        inputs = self._env.plan.logical[self._env.task.component].inputs
        return all(entry.grouping.kind != "fields" for entry in inputs)

    @cached_property
    def _own(self) -> int | None:
        """The key of rows that have none; beside tasks of the same kind it is this one's."""
        keys = self._env.keys
        return keys.own if self.none and keys.tasks > 1 else None

    @property
    def only(self) -> tuple[int | None] | None:
        """All keys that rows may have; None: they may have any."""
        return (self._own,) if self.none else None

    def of_columns(self, columns: ColumnBatch) -> Keyed:
        """Each key once, and which of them each row has; EncodingError: one is none."""
        names = self._grouped_by(columns.component, columns.stream)
        if not names:
            return Keyed([self._own], np.zeros(len(columns), dtype=np.intp))
        return Keyed.of([columns[name] for name in names])

    def of_rows(self, rows: TupleBatch) -> Sequence[Any]:
        """One for each row; EncodingError: one is none."""
        found = self._of.get((rows.component, rows.stream))
        if found is None:
            found = self._of[rows.component, rows.stream] = self._key_by(rows)
        keys = found(rows.rows)
        return keys if are_keys(keys) else list(map(as_key, keys))

    def _key_by(self, rows: TupleBatch) -> Callable[[Rows], Sequence[Any]]:
        names = self._grouped_by(rows.component, rows.stream)
        if not names:
            return lambda some: [self._own] * len(some)
        key = itemgetter(*map(rows.fields.index, names))
        return lambda some: list(map(key, some))

    def _grouped_by(self, component: str, stream: str) -> tuple[str, ...]:
        for entry in self._env.plan.logical[self._env.task.component].inputs:
            if (entry.component, entry.stream) == (component, stream) and entry.grouping.kind == "fields":
                return entry.grouping.fields
        return ()
