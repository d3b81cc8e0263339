"""What keeps the open windows of a task, whatever their kind (docs/windows.md, how it is kept).

Pure: times are whole microseconds since 1970, or infinite; nothing here knows which clock they are of.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.column_keys import distinct_rows
from ardea.protocol.dict_keys import are_keys, as_key
from ardea.windows.kinds import MICROS, Firing, Window

AT_ONCE = 1000
"""Keys of a window that are seen in one step, at most."""

Time = float
"""Microseconds; minus infinity before there is a watermark."""


class Seen(NamedTuple):
    """Windows of one begin and end, of different keys, with their values."""

    window: Window
    keys: Sequence[Any]
    values: Sequence[Any]


class Keyed(NamedTuple):
    """Keys, each once, and which of them each row has."""

    keys: Sequence[Any]
    places: NDArray[np.intp]

    @classmethod
    def of(cls, columns: Sequence[Any]) -> Keyed:
        """Those of rows whose keys are in such Arrow columns; EncodingError: one can be no key."""
        found, places = distinct_rows(columns)
        places = np.arange(len(columns[0]), dtype=np.intp) if places is None else places
        keys = [row[0] for row in found] if len(columns) == 1 else found
        if are_keys(keys):
            return cls(keys, places)
        order: dict[Any, int] = {}
        numbers = np.array([order.setdefault(as_key(key), len(order)) for key in keys], dtype=np.intp)
        return cls(list(order), numbers[places])


class Table(MutableMapping[Any, Any]):
    """A keyed state of (key, what tells the parts of a key apart)."""

    @abstractmethod
    def take_many(self, keys: Sequence[Any]) -> list[Any]:
        """The values of keys that are there, which are removed."""


@dataclass(slots=True)
class WindowCounts:
    """Windows seen so far, by how, and rows that are in none: too late, or without a stamp."""

    fired: Counter[Firing] = field(default_factory=Counter)
    late: int = 0
    unstamped: int = 0


class OpenWindows(Protocol):
    """Those of one task."""

    def add(self, keys: Sequence[Any], stamps: Any, items: Sequence[Any], time: Time) -> Sequence[int]:
        """Rows, each in the windows that it belongs to; returns the places of those that are late.

        ``stamps``: microseconds, a NumPy array; ``items``: what the fold adds of each row.
        """

    def at_once(self) -> Iterable[Seen]:
        """What is to be seen as rows were added: windows that are full, or get rows late."""

    @property
    def next(self) -> Time:
        """When the next one is due; infinity: nobody knows, or nothing is open."""

    def due(self, time: Time) -> bool:
        """Whether something is, by then."""

    def step(self, time: Time, most: int = AT_ONCE) -> Seen | None:
        """A slice of what is due by then, of so many keys at most; None: of that nothing is to be seen."""

    def unseen(self, keys: Sequence[Any], stamps: Any, time: Time) -> Iterable[tuple[Any, Any]]:
        """The windows that these rows are in and that are not over: (window, key), for early firings."""

    def open(self, time: Time) -> Iterable[tuple[Any, Any]]:
        """All that are not over, as :meth:`unseen` gives them."""

    def early(self, windows: Sequence[tuple[Any, Any]]) -> Iterable[Seen]:
        """Those of them that are still open, as they are."""


def window(start: int, end: int, firing: Firing) -> Window:
    """In seconds."""
    return Window(start / MICROS, end / MICROS, firing)
