"""What lies at the bottom of a keyed state in memory: a dict, or several where values have a time to live."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ardea.backends.contract import PARTS, Base, Chunk, Row
from ardea.snapshots.key_groups import Keys


class PlainBase(dict[Any, Any]):
    """Values as they are kept, by key, for as long as nobody removes them.

    ``keys``: None where there are no snapshots.
    """

    __slots__ = ("_keys",)
    slice = 1000

    def __init__(self, keys: Keys | None = None) -> None:
        super().__init__()
        self._keys = keys

    def add(self, rows: Iterable[Row], written: float) -> None:  # noqa: ARG002
        """See :class:`ardea.backends.contract.Base`, as for all of these."""
        self.update(rows)

    def remove(self, keys: Iterable[Any]) -> None:
        """By one."""
        for key in keys:
            self.pop(key, None)

    def chunks(self) -> Iterator[Chunk]:
        """All were written at no time."""
        yield from by_group(self, 0.0, self._keys)

    def expired(self, written: float) -> bool:  # noqa: ARG002
        """Never."""
        return False

    def prune(self) -> None:
        """Nothing is gone."""


def by_group(values: dict[Any, Any], written: float, keys: Keys | None) -> Iterator[Chunk]:
    """All of these."""
    assert keys is not None
    groups: dict[int, list[Row]] = {}
    for row in values.items():
        groups.setdefault(keys.group(row[0]), []).append(row)
    for group in sorted(groups):
        yield Chunk(written, group, groups[group])


class _Part:
    """Values that were written at about one time, the last by ``written``."""

    def __init__(self) -> None:
        self.written = -math.inf
        self.values: dict[Any, Any] = {}


class AgingBase:
    """Values that are gone ``ttl`` seconds after they were written.

    Each key lies in one part.  A part is gone as a whole, so that no key needs a time of its own.
    """

    slice = 1000

    def __init__(self, keys: Keys | None, ttl: float, now: Callable[[], float]) -> None:
        self._keys, self._ttl, self._now = keys, ttl, now
        self._parts: dict[int, _Part] = {}

    def add(self, rows: Iterable[Row], written: float) -> None:
        """See :class:`ardea.backends.contract.Base`, as for all of these."""
        place = place_of(written, self._ttl)
        part = self._parts.setdefault(place, _Part())
        part.written = max(part.written, written)
        others = [other.values for other in self._parts.values() if other is not part]
        for key, value in rows:
            for other in others:
                other.pop(key, None)
            part.values[key] = value

    def remove(self, keys: Iterable[Any]) -> None:
        """From whatever part."""
        for key in keys:
            for part in self._parts.values():
                part.values.pop(key, None)

    def chunks(self) -> Iterator[Chunk]:
        """Newest first."""
        for part in self._present():
            yield from by_group(part.values, part.written, self._keys)

    def _present(self) -> Iterator[_Part]:
        for _, part in sorted(self._parts.items(), reverse=True):
            if not self.expired(part.written):
                yield part

    def expired(self, written: float) -> bool:
        """By the clock, now."""
        return written != 0.0 and written + self._ttl <= self._now()

    def prune(self) -> None:
        """Whole parts; what was written at no time has one from now on, if there is any."""
        if (part := self._parts.get(0)) is not None and part.written == 0.0 and (now := self._now()) > -math.inf:
            part.written = now
        self._parts = {place: part for place, part in self._parts.items() if not self.expired(part.written)}

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a dict."""
        for part in self._parts.values():
            if key in part.values:
                return default if self.expired(part.written) else part.values[key]
        return default

    def __contains__(self, key: object) -> bool:
        return any(key in part.values for part in self._present())

    def __iter__(self) -> Iterator[Any]:
        for part in self._present():
            yield from part.values

    def __len__(self) -> int:
        return sum(len(part.values) for part in self._present())


def place_of(written: float, ttl: float) -> int:
    """The part in which values lie that were written then."""
    return int(written * PARTS // ttl)


def base_in_memory(keys: Keys | None, ttl: float | None, now: Callable[[], float]) -> Base:
    """See :class:`ardea.backends.contract.Backend`; ``keys``: None where there are no snapshots."""
    return PlainBase(keys) if ttl is None else AgingBase(keys, ttl, now)


class MemoryBackend:
    """Everything lies in memory."""

    def __init__(self, folder: Path) -> None:
        """Nothing lies in the folder."""

    def base(self, state: str, keys: Keys, ttl: float | None, now: Callable[[], float]) -> Base:  # noqa: ARG002
        """See :class:`ardea.backends.contract.Backend`."""
        return base_in_memory(keys, ttl, now)

    def close(self) -> None:
        """Nothing is left behind."""
