"""The keys of many rows, in the form in which a dict finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from ardea.protocol.dict_keys import are_keys, as_key


def as_keys(keys: Sequence[tuple[Any, ...]]) -> Sequence[tuple[Any, ...]]:
    """The same of whole keys, each of several values."""
    if are_keys(list(chain.from_iterable(keys))):
        return keys
    return [tuple([as_key(value) for value in key]) for key in keys]


def keys_in(rows: Iterable[Sequence[Any]], places: Sequence[int]) -> Sequence[tuple[Any, ...]]:
    """The key of each row, whose values stand in these places."""
    return as_keys([tuple([row[place] for place in places]) for row in rows])
