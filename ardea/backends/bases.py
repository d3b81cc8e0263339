"""What lies at the bottom of a keyed state in memory: a dict, or several where values have a time to live."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

PARTS = 8
"""Into so many parts a time to live is divided: a value is gone that much later at most."""


class Base(dict[Any, Any]):
    """Values as they are kept, by key, for as long as nobody deletes them."""

    __slots__ = ()

    def add(self, rows: Iterable[tuple[Any, Any]], written: float) -> None:  # noqa: ARG002
        """Keys and values, which were written by then, in seconds since 1970."""
        self.update(rows)

    def parts(self) -> Iterator[tuple[float, dict[Any, Any]]]:
        """By when they were written, and values by key; each key once."""
        yield 0.0, self

    def expired(self, written: float) -> bool:  # noqa: ARG002
        """Whether what was written by then is gone."""
        return False

    def prune(self) -> None:
        """Forgets what is gone; not while somebody reads."""


class _Part:
    """Values that were written at about one time, the last by ``written``."""

    def __init__(self) -> None:
        self.written = 0.0
        self.values: dict[Any, Any] = {}


class AgingBase(Base):
    """Values that are gone ``ttl`` seconds after they were written; the dict that it is stays empty.

    Each key lies in one part.  A part is gone as a whole, so that no key needs a time of its own.
    """

    def __init__(self, ttl: float, now: Callable[[], float]) -> None:
        super().__init__()
        self._ttl, self._now = ttl, now
        self._parts: dict[int, _Part] = {}

    def add(self, rows: Iterable[tuple[Any, Any]], written: float) -> None:
        """See :class:`Base`, as for all of these."""
        place = int(written * PARTS // self._ttl)
        part = self._parts.setdefault(place, _Part())
        part.written = max(part.written, written)
        others = [other.values for other in self._parts.values() if other is not part]
        for key, value in rows:
            for other in others:
                other.pop(key, None)
            part.values[key] = value

    def parts(self) -> Iterator[tuple[float, dict[Any, Any]]]:
        """Those that are not gone, newest first."""
        for _, part in sorted(self._parts.items(), reverse=True):
            if not self.expired(part.written):
                yield part.written, part.values

    def expired(self, written: float) -> bool:
        """By the clock, now."""
        return written + self._ttl <= self._now()

    def prune(self) -> None:
        """Whole parts."""
        self._parts = {place: part for place, part in self._parts.items() if not self.expired(part.written)}

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        for part in self._parts.values():
            if key in part.values:
                return default if self.expired(part.written) else part.values[key]
        return default

    def pop(self, key: Any, *default: Any) -> Any:
        """As of a dict with a default."""
        found = self.get(key, *default)
        for part in self._parts.values():
            part.values.pop(key, None)
        return found

    def __contains__(self, key: object) -> bool:
        return any(key in keys for _, keys in self.parts())

    def __iter__(self) -> Iterator[Any]:
        for _, keys in self.parts():
            yield from keys

    def __len__(self) -> int:
        return sum(len(keys) for _, keys in self.parts())
