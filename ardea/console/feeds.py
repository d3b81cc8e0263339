"""What a viewer has, what has changed since, and what is left out where it is too slow.  Pure."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple

from ardea.console.documents import Encoded, Line

VIEWERS = 100
HELD_BYTES = 256 << 10
"""Of a log, for one viewer."""


class News(NamedTuple):
    """One event: ``kind`` names the document."""

    kind: str
    body: bytes


class Feed:
    """The documents of one viewer: each of them once, the newest only."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}

    def news(self, documents: Mapping[str, Encoded]) -> list[News]:
        """Those that the viewer does not have; by now it has them."""
        fresh = [News(kind, each.body) for kind, each in documents.items() if self._sent.get(kind) != each.tag]
        self._sent.update({kind: each.tag for kind, each in documents.items()})
        return fresh


class Shared:
    """Documents that are encoded once for all who look at the same.  ``most``: things that are kept."""

    def __init__(self, most: int = 2 * VIEWERS) -> None:
        self._most = most
        self._made: dict[Hashable, tuple[Sequence[object], Mapping[str, Encoded]]] = {}

    def of(
        self, key: Hashable, version: Sequence[object], make: Callable[[], Mapping[str, Encoded]]
    ) -> Mapping[str, Encoded]:
        """The documents of a thing; made anew where an object of its version is another one."""
        kept = self._made.pop(key, None)
        if kept is None or [id(each) for each in kept[0]] != [id(each) for each in version]:
            kept = (version, make())
        self._made[key] = kept
        while len(self._made) > self._most:
            self._made.pop(next(iter(self._made)))
        return kept[1]


class LineFeed:
    """Lines of a log on their way to one viewer: the newest that fit; thread-safe for one writer and one reader.

    Args:
        most: bytes of their texts.
    """

    def __init__(self, most: int = HELD_BYTES) -> None:
        self._most, self._held = most, 0
        self._lines: deque[tuple[int, Line]] = deque()
        self._left_out = 0
        self._lock = threading.Lock()

    def put(self, line: Line) -> None:
        """The next line; older ones make room for it."""
        size = len(line.text.encode(errors="replace")) + len(line.process)
        with self._lock:
            self._lines.append((size, line))
            self._held += size
            while self._held > self._most and len(self._lines) > 1:
                dropped, _ = self._lines.popleft()
                self._held -= dropped
                self._left_out += 1

    def take(self) -> tuple[list[Line], int]:
        """All that waits, and how many lines were left out before them since the last call."""
        with self._lock:
            lines, left_out = [line for _, line in self._lines], self._left_out
            self._lines.clear()
            self._held = self._left_out = 0
        return lines, left_out


class Viewers:
    """How many are connected."""

    def __init__(self, most: int = VIEWERS) -> None:
        self._most, self._count = most, 0

    def enter(self) -> bool:
        """Whether there is room for another one, who is counted."""
        if self._count >= self._most:
            return False
        self._count += 1
        return True

    def leave(self) -> None:
        """A viewer who has entered has left."""
        self._count -= 1
