"""The stream ``future`` of a spout: rows go there whose stamps are too far ahead of the clock (docs/time.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ardea.heron_instance.trees import Ids
from ardea.watermarks import FUTURE, SourceTime, stamps_of


class Future:
    """Divides what a spout emits, as it does so; a row that is sent again goes where it went first.

    ``places``: of the field with stamps, in the streams that are divided.
    """

    def __init__(self, source: SourceTime, places: Mapping[str, int]) -> None:
        self._source, self._places = source, places

    def stream(self, stream: str, row: Sequence[Any]) -> str:
        """Where a row goes."""
        return FUTURE if self._ahead(stream, [row]) else stream

    def runs(self, stream: str, rows: Sequence[Any]) -> list[tuple[str, slice]]:
        """Where rows go, in their order."""
        if not (ahead := self._ahead(stream, rows)):
            return [(stream, slice(len(rows)))]
        ends = [place for place in range(1, len(ahead)) if ahead[place] != ahead[place - 1]]
        cuts = pairwise([0, *ends, len(ahead)])
        return [(FUTURE if ahead[first] else stream, slice(first, end)) for first, end in cuts]

    def batches(self, stream: str, batch: Any, ids: Ids | None) -> Iterator[tuple[str, Any, Ids | None]]:
        """Where the rows of a record batch go, with the ids of those that have some."""
        ahead = self._ahead(stream, batch)
        if not ahead or (ids is not None and len(ids) != len(ahead)):
            yield stream, batch, ids
            return
        for name, chosen in ((stream, np.logical_not(ahead)), (FUTURE, ahead)):
            places = np.flatnonzero(chosen)
            some = ids[places] if isinstance(ids, np.ndarray) else ids and [ids[place] for place in places]
            yield name, batch.take(places), some

    def _ahead(self, stream: str, rows: Any) -> list[bool] | None:
        """Which rows are; None: no one."""
        place = self._places.get(stream)
        return None if place is None else self._source.ahead(stamps_of(rows, place))
