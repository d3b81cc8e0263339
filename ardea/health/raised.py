"""Exceptions of authors' code, as a master keeps them."""

from __future__ import annotations

import msgspec


class Raised(msgspec.Struct, frozen=True, kw_only=True):
    """Those of one component that have one type and one stack, of all lives of its tasks since the master began.

    ``tasks``: how many each of them raised.  ``message``, ``stack`` and ``row``, the tuple (empty: of none), are those
    of the last one that was told whole.  ``first`` and ``last``: Unix seconds, when the master heard of it.
    """

    component: str
    type: str
    message: str
    stack: str
    row: str
    count: int
    tasks: dict[str, int]
    first: float
    last: float
