"""The queues between an instance's two threads: one writer, one reader, bounded in bytes and messages.

The bound is kept by the writer, which asks :attr:`BoundedQueue.full` before it makes more; nothing that was made is
refused.  Counters are written by one side each, so no lock is needed.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
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


class BoundedQueue(Generic[T]):
    """First in, first out.  ``wake`` is called after each put, for a reader that sleeps elsewhere."""

    def __init__(self, name: str, capacity: int, capacity_bytes: int, wake: Callable[[], None] | None = None) -> None:
        self.name = name
        self.capacity = capacity
        self.capacity_bytes = capacity_bytes
        self._queue: queue.SimpleQueue[tuple[T, int]] = queue.SimpleQueue()
        self._wake = wake
        self._put = self._put_bytes = self._taken = self._taken_bytes = 0

    def put(self, item: T, size: int = 0) -> None:
        """Appends; ``size`` in bytes."""
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
