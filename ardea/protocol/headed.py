"""Rows that begin with the same values, which travel once (decision 59)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

Values = tuple[Any, ...]


class HeadedRows(Sequence[Values]):
    """Row i is ``head`` and behind it ``body[i]``; whole rows are made when they are looked at."""

    __slots__ = ("body", "head")

    def __init__(self, head: Values, body: Sequence[Sequence[Any]]) -> None:
        self.head = head
        self.body = body

    def __len__(self) -> int:
        return len(self.body)

    def __iter__(self) -> Iterator[Values]:
        head = self.head
        return ((*head, *row) for row in self.body)

    @overload
    def __getitem__(self, place: int) -> Values: ...
    @overload
    def __getitem__(self, place: slice) -> HeadedRows: ...
    def __getitem__(self, place: int | slice) -> Values | HeadedRows:
        if isinstance(place, slice):
            return HeadedRows(self.head, self.body[place])
        return (*self.head, *self.body[place])
