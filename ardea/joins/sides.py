"""One side of a join: what is read of its rows, and how the author sees them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from ardea.context import TopologyContext
from ardea.errors import EncodingError
from ardea.joins.declared import Join
from ardea.joins.kept import MICROS, VALUES, Row
from ardea.protocol.dict_keys import as_key, is_key
from ardea.protocol.keys import encode_key
from ardea.tuples import Tuple
from ardea.watermarks import Timestamps

NO_KEY = object()
_MOST = (1 << 62) / MICROS
"""Seconds: no stamp is further from 1970."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of two, and the origin of its rows when they are told: ``names`` are its fields, as they are stored."""

    number: int
    component: str
    stream: str
    fields: tuple[str, ...]
    names: list[str]
    key: Callable[[tuple[Any, ...]], Any]
    stamps: Timestamps | None
    place: int
    task: int = -1

    @classmethod
    def of(cls, context: TopologyContext, join: Join, number: int) -> Side:
        """The left one is number 0, the right one 1."""
        component, stream = source = join.sides[number]
        fields = context.this_input_fields[source]
        key = itemgetter(*map(fields.index, context.this_sources[source].fields))
        stamps = None if join.stamps is None else join.stamps[number]
        place = 0 if stamps is None else fields.index(stamps.field)
        return cls(number, component, stream, fields, list(fields), key, stamps, place)

    @property
    def stamp(self) -> str:
        """Its field."""
        return self.fields[self.place]

    def at(self, tup: Tuple) -> float | None:
        """The stamp of a row, 0.0 where none is needed; None: it has none."""
        if self.stamps is None:
            return 0.0
        try:
            at = self.stamps.seconds(tup.values[self.place])
        except (OverflowError, ValueError):  # a number, or a date, that no clock shows
            return None
        return at if at is not None and -_MOST < at < _MOST else None

    def key_of(self, tup: Tuple) -> Any:
        """The key of a row; ``NO_KEY``: it has none."""
        try:
            key = as_key(self.key(tup.values))
            if not is_key(key):
                encode_key((key,))
        except EncodingError:
            return NO_KEY
        return key

    def read(self, fields: Sequence[str], rows: list[Row]) -> list[Row]:
        """Rows that were kept when the stream had these fields."""
        for row in rows:
            if row[VALUES] is not None:
                known = dict(zip(fields, row[VALUES], strict=True))
                row[VALUES] = [known.get(name) for name in self.names]
        return rows

    def id_of(self, index: int) -> str:
        """As of a tuple that has none."""
        return f"{self.component}:{self.stream}:{index}"

    def tuple(self, values: Any) -> Tuple:
        """A row, as the author sees it."""
        return Tuple(tuple(values), 0, self)
