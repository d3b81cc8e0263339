"""Rows that were put together ahead of their windows: which can be, and how they travel (docs/windows.md).

A part is the last value of a row: bytes, of how many rows it is and what the fold has made of them; None: it is one.
Pure: times are whole microseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ardea.protocol.values import RowCodec
from ardea.tuples import Batch

_CODEC = RowCodec()


class Part(NamedTuple):
    """``rows``: of how many rows ``value`` is."""

    rows: int
    value: Any

    def encoded(self) -> bytes:
        """As it travels; EncodingError: the value cannot."""
        return _CODEC.encode([self])

    @classmethod
    def decoded(cls, data: bytes) -> Part:
        """ProtocolError: it is none."""
        return cls(*_CODEC.decode(data, 2)[0])


def apart(rows: Sequence[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Those that are one row, without the part, and those that are several, with it."""
    return [row[:-1] for row in rows if row[-1] is None], [row for row in rows if row[-1] is not None]


@dataclass(frozen=True, slots=True)
class WithoutPart(Batch):
    """Where rows come from that had a part."""

    origin: Batch

    @property
    def component(self) -> str:
        """See :class:`Batch`, as for all of these."""
        return self.origin.component

    @property
    def stream(self) -> str:
        """Likewise."""
        return self.origin.stream

    @property
    def task(self) -> int:
        """Likewise."""
        return self.origin.task

    @property
    def fields(self) -> tuple[str, ...]:
        """All but that of the part."""
        return self.origin.fields[:-1]

    def id_of(self, index: int) -> str:
        """Of a row as it stands there now."""
        return self.origin.id_of(index)


class Together(NamedTuple):
    """Rows of a batch that become fewer.

    Attributes:
        rows: numbers of the rows that are put together, as they came.
        groups: the group of each.
        sizes: of the groups.
        members: the numbers again, group after group, in each that with the greatest stamp last.
        others: numbers of the rows that go on as they are.
    """

    rows: NDArray[np.intp]
    groups: NDArray[np.intp]
    sizes: NDArray[np.intp]
    members: NDArray[np.intp]
    others: NDArray[np.intp]

    def split(self) -> Iterator[list[int]]:
        """The members of each group."""
        members, begin = self.members.tolist(), 0
        for size in self.sizes.tolist():
            yield members[begin : begin + size]
            begin += size

    def encoded(self, values: Iterable[Any]) -> list[bytes]:
        """The parts, of the value of each group."""
        return [Part(rows, value).encoded() for rows, value in zip(self.sizes.tolist(), values, strict=True)]


def together(keys: NDArray[np.intp], panes: NDArray[np.int64], stamps: NDArray[np.int64], fit: Any) -> Together:
    """Rows of one key and pane, where there are several.

    Args:
        keys: a number for each key.
        panes: the begin of that which each row is in.
        stamps: of the rows.
        fit: which rows may be put together.
    """
    rows = np.flatnonzero(fit)
    found, pane = np.unique(panes[rows], return_inverse=True)
    _, groups, sizes = np.unique(keys[rows] * len(found) + pane, return_inverse=True, return_counts=True)
    several = sizes[groups] > 1
    if not several.all():
        rows = rows[several]
        _, groups, sizes = np.unique(groups[several], return_inverse=True, return_counts=True)
    members = rows[np.lexsort((stamps[rows], groups))]
    others = np.setdiff1d(np.arange(len(stamps)), rows, assume_unique=True)
    return Together(rows, groups, sizes, members, others)


def alone(rows: int) -> Together:
    """All go on as they are."""
    nothing = np.array([], dtype=np.intp)
    return Together(nothing, nothing, nothing, nothing, np.arange(rows))
