"""Which of a task's input comes before a snapshot's barrier, and which after it (docs/snapshots.md).

Pure: what has come of each task upstream goes in by :meth:`Alignment.put`, and is processed as :meth:`Alignment.next`
says.  One is made for each timeline, in which a task upstream has one life.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Aligned:
    """All barriers of this snapshot have come: the task takes its state, and passes the barrier.

    ``bytes_aside``: so much was set aside for it.
    """

    number: int
    bytes_aside: int = field(default=0, compare=False)


class _Arrived(msgspec.Struct, Generic[T], frozen=True):
    """``barrier`` is the number of one, else 0; ``size`` in bytes."""

    source: int
    item: T
    size: int
    barrier: int


class Alignment(Generic[T]):
    """Of one task.

    ``upstream``: the tasks whose barriers it waits for.  ``put_aside`` is called once with each item that is set aside,
    and returns what stands in its place.  ``number``: the snapshot that the task aligns for; 0: for none.
    ``bytes_aside``: so much is set aside.
    """

    def __init__(self, upstream: Iterable[int], put_aside: Callable[[T], T] = lambda item: item) -> None:
        self.number = 0
        self.bytes_aside = 0
        self._upstream = set(upstream)
        self._put_aside = put_aside
        self._over = 0  # no barrier up to this number says anything any more
        self._here: set[int] = set()  # whose barriers have come
        self._waiting: deque[_Arrived[T]] = deque()
        self._aside: deque[_Arrived[T]] = deque()

    def put(self, source: int, item: T, size: int = 0, *, barrier: int = 0) -> None:
        """Something of a task upstream, in order; ``barrier`` is its snapshot's number where it is one."""
        self._waiting.append(_Arrived(source, item, size, barrier))

    def next(self) -> T | Aligned | None:
        """What to do next; None: nothing yet."""
        while True:
            if self.number and self._upstream <= self._here:
                return self._complete()
            if not self._waiting:
                return None
            arrived = self._waiting.popleft()
            if arrived.source in self._here and arrived.barrier <= self.number:
                self._set_aside(arrived)
            elif arrived.source in self._here:
                self._waiting.appendleft(arrived)  # its turn comes after what was set aside before it
                self._end()
            elif not arrived.barrier:
                return arrived.item
            elif arrived.barrier > self._over:
                self._barrier(arrived.source, arrived.barrier)

    def empty(self) -> list[T]:
        """All that was not processed; nothing of it will be."""
        left = [arrived.item for arrived in (*self._aside, *self._waiting)]
        self._aside.clear()
        self._waiting.clear()
        return left

    def ended(self, source: int) -> None:
        """That task sends nothing any more, and so no barrier."""
        self._upstream.discard(source)

    def abandoned(self, number: int) -> None:
        """No snapshot up to this one is taken any more."""
        self._over = max(self._over, number)
        if 0 < self.number <= number:
            self._end()

    @property
    def idle(self) -> bool:
        """Whether :meth:`next` has nothing to say before more comes."""
        return not self._waiting and not (self.number and self._upstream <= self._here)

    def _barrier(self, source: int, number: int) -> None:
        if number > self.number:
            self._end()  # a lower one was abandoned, or no higher one would have begun
            self.number = number
        if number == self.number:
            self._here.add(source)

    def _set_aside(self, arrived: _Arrived[T]) -> None:
        kept = _Arrived(arrived.source, self._put_aside(arrived.item), arrived.size, arrived.barrier)
        self._aside.append(kept)
        self.bytes_aside += arrived.size

    def _complete(self) -> Aligned:
        aligned = Aligned(self.number, self.bytes_aside)
        self._end()
        return aligned

    def _end(self) -> None:
        """What was set aside comes next, in the order in which it came."""
        self._over = max(self._over, self.number)
        self.number = self.bytes_aside = 0
        self._here.clear()
        self._waiting.extendleft(reversed(self._aside))
        self._aside.clear()
