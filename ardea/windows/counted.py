"""Windows of so many rows of a key.

tumbling: (key, None) -> [rows so far, value]        sliding: (key, None) -> [rows since the last window, items]
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any

from ardea.windows.kinds import CountSliding, CountTumbling, Firing, Global, Window
from ardea.windows.open_windows import AT_ONCE, Seen, Table, Time


class Untimed:
    """What windows have in common that no time ends."""

    _full: list[Seen]
    _open: dict[Any, None]  # keys whose window is seen at the end of the input

    def at_once(self) -> Iterator[Seen]:
        full, self._full = self._full, []
        yield from full

    @property
    def next(self) -> Time:
        return math.inf

    def due(self, time: Time) -> bool:
        """Only the end of all input ends them."""
        return time == math.inf and bool(self._open)


class Counted(Untimed):
    """Of one task.  At the end of the input the windows that are not full are seen as they are."""

    def __init__(self, kind: CountTumbling | CountSliding, table: Table, only: Container[Any] | None = None) -> None:
        """``only``: keys that rows may have, others' windows never become full; None: they may have any."""
        self._table, self._fold, self._most = table, kind.fold, kind.rows
        self._every = kind.every if isinstance(kind, CountSliding) else 0  # 0: they tumble
        self._full: list[Seen] = []
        self._open: dict[Any, None] = {}  # keys with rows that no window has had yet
        self._left: dict[Any, None] = {}  # keys of tasks as they were before an update
        for key, _ in table:
            if only is not None and key not in only:
                self._left[key] = None
            elif table[key, None][0]:
                self._open[key] = None

    def add(self, keys: Sequence[Any], stamps: Any, items: Sequence[Any], time: Time) -> Sequence[int]:  # noqa: ARG002
        """See :class:`ardea.windows.open_windows.OpenWindows`, as for all of these."""
        put = self._put if not self._every else self._slide
        for key, item in zip(keys, items, strict=True):
            put(key, item)
        return ()

    def _put(self, key: Any, item: Any) -> None:
        count, value = self._table.get((key, None)) or (0, self._fold.zero())
        count, value = count + 1, self._fold.put(value, item)
        if count < self._most:
            self._table[key, None] = [count, value]
            self._open[key] = None
        else:
            self._see(key, value, "on time")
            self._forget(key)

    def _slide(self, key: Any, item: Any) -> None:
        fresh, items = self._table.get((key, None)) or (0, [])
        fresh, items = fresh + 1, [*items, item][-self._most :]
        if fresh >= self._every:  # another version may have said more
            self._see_items(key, items)
            fresh = 0
            self._open.pop(key, None)
        else:
            self._open[key] = None
        self._table[key, None] = [fresh, items]

    def _see_items(self, key: Any, items: Sequence[Any]) -> None:
        value = self._fold.zero()
        for item in items:
            value = self._fold.put(value, item)
        self._see(key, value, "on time")

    def _see(self, key: Any, value: Any, firing: Firing) -> None:
        self._full.append(Seen(Window(None, None, firing), [key], [self._fold.result(value)]))

    def _forget(self, key: Any) -> None:
        self._open.pop(key, None)
        self._left.pop(key, None)
        self._table.pop((key, None), None)

    def due(self, time: Time) -> bool:
        """What is left of former tasks is seen at once."""
        return bool(self._left) or super().due(time)

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:  # noqa: ARG002 -- one
        if not self.due(time):
            return None
        key = next(iter(self._left or self._open))
        fresh, value = self._table[key, None]
        self._forget(key)
        if not fresh:
            return None
        if not self._every:
            self._see(key, value, "on time")
        else:
            self._see_items(key, value)
        return self._full.pop()

    def unseen(self, keys: Sequence[Any], stamps: Any, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        return iter(())

    def open(self, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        return iter(())

    def early(self, windows: Sequence[tuple[Any, Any]]) -> Iterator[Seen]:  # noqa: ARG002
        return iter(())


class Whole(Untimed):
    """The one window of each key of a task."""

    def __init__(self, kind: Global, table: Table) -> None:
        self._table, self._fold, self._rows = table, kind.fold, kind.rows
        self._full: list[Seen] = []
        self._open = {key: None for key, _ in table}

    def add(self, keys: Sequence[Any], stamps: Any, items: Sequence[Any], time: Time) -> Sequence[int]:  # noqa: ARG002
        """See :class:`ardea.windows.open_windows.OpenWindows`, as for all of these."""
        self._open.update(dict.fromkeys(keys))
        for key, item in zip(keys, items, strict=True):
            count, value = self._table.get((key, None)) or (0, self._fold.zero())
            count, value = count + 1, self._fold.put(value, item)
            self._table[key, None] = [count, value]
            if self._rows is not None and count % self._rows == 0:
                self._full.append(self._seen(key, self._fold.copied(value), "early"))  # later rows may change it
        return ()

    def _seen(self, key: Any, value: Any, firing: Firing) -> Seen:
        return Seen(Window(None, None, firing), [key], [self._fold.result(value)])

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:  # noqa: ARG002 -- one
        if not self.due(time):
            return None
        key, _ = self._open.popitem()
        _, value = self._table.pop((key, None))
        return self._seen(key, value, "on time")

    def unseen(self, keys: Sequence[Any], stamps: Any, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        return ((None, key) for key in keys)

    def open(self, time: Time) -> Iterator[tuple[Any, Any]]:  # noqa: ARG002
        return ((None, key) for key in self._open)

    def early(self, windows: Sequence[tuple[Any, Any]]) -> Iterator[Seen]:
        for _, key in windows:
            if key in self._open:
                yield self._seen(key, self._fold.copied(self._table[key, None][1]), "early")
