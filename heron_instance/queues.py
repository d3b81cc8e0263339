"""The queues between an instance's two threads: one writer, one reader, bounded in bytes and messages.

The bound is kept by the writer, which asks :attr:`BoundedQueue.full` before it makes more; nothing that was made is
refused.  Counters are written by one side each, so no lock is needed.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """Now: messages and bytes waiting, and the bounds; ``puts`` counts since the start."""

    name: str
    depth: int
    bytes: int
    capacity: int
    capacity_bytes: int
    puts: int


@dataclass(slots=True)
class _Word(Generic[T]):
    item: T
    taken: bool = False


class BoundedQueue(Generic[T]):
    """First in, first out.  ``wake`` is called after each put, for a reader that sleeps elsewhere."""

    def __init__(self, name: str, capacity: int, capacity_bytes: int, wake: Callable[[], None] | None = None) -> None:
        self.name = name
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._queue: queue.SimpleQueue[tuple[T | _Word[T], int]] = queue.SimpleQueue()
        self._words: dict[Hashable, _Word[T]] = {}
        self._wake = wake
        self._put = self._put_bytes = self._taken = self._taken_bytes = 0

    def put(self, item: T, size: int = 0) -> None:
        """Appends; ``size`` in bytes."""
        self._append(item, size)

    def put_newest(self, key: Hashable, item: T) -> None:
        """Of what is said again and again: in the place of the last one with this key, if that still waits."""
        word = self._words.get(key)
        if word is not None:
            word.item = item
            if not word.taken:  # looked at last, as the reader writes it first: one of the two sees the other
                return
        word = self._words[key] = _Word(item)
        self._append(word, 0)

    def _append(self, item: T | _Word[T], size: int) -> None:
        self._put += 1
        self._put_bytes += size
        self._queue.put((item, size))
        if self._wake is not None:
            self._wake()

    def take(self, timeout: float | None = None) -> T | None:
        """The next item, waiting up to ``timeout`` seconds for it (None: not at all); None if there is none."""
        try:
            item, size = self._queue.get(timeout is not None, timeout)
        except queue.Empty:
            return None
        self._taken += 1
        self._taken_bytes += size
        if isinstance(item, _Word):
            item.taken = True
            return item.item
        return item

    @property
    def empty(self) -> bool:
        """Whether nothing waits."""
        return self._put == self._taken

    @property
    def full(self) -> bool:
        """Whether the writer should make no more for now."""
        return self._put - self._taken >= self.capacity or self._put_bytes - self._taken_bytes >= self.capacity_bytes

    def statistics(self) -> QueueStatistics:
        """A snapshot."""
        return QueueStatistics(
            self.name,
            self._put - self._taken,
            self._put_bytes - self._taken_bytes,
            self.capacity,
            self.capacity_bytes,
            self._put,
        )
