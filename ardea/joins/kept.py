"""What a join keeps of one key, and what it finds for a row.  Pure; stamps are whole microseconds since 1970."""

from __future__ import annotations

import math
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

MICROS = 1_000_000
LEFT, RIGHT = 0, 1
AT, PAIRED, VALUES = 0, 1, 2
Row: TypeAlias = list[Any]
"""[stamp, whether it is in a pair, values]; values are None where a table says that its key is gone."""
Kept: TypeAlias = list[list[Row]]
"""The rows of both sides, each in the order of stamps; of one stamp in the order in which they came."""
stamp_of = itemgetter(AT)


class Found(NamedTuple):
    """Values that belong together, None for nobody; ``at``: from when on that is so, in seconds."""

    left: Any
    right: Any
    at: float | None


class Machine(Protocol):
    """One kind of join.  What it yields is to be told before the next one is asked for: then it is noted."""

    def came(self, kept: Kept, side: int, row: Row, now: float) -> Iterator[Found]:
        """A row, which is kept after all that it yields; ``now``: the watermark, in seconds."""

    def passed(self, kept: Kept, now: float) -> Iterator[Found]:
        """The watermark is ``now``: rows that can belong to nobody any more leave."""

    def due(self, kept: Kept) -> float:
        """From which watermark on there is something to do; infinity: never."""


def seconds(at: float) -> float:
    """Of microseconds; a larger one is never less."""
    return at / MICROS if at < math.inf else math.inf
