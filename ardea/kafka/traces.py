"""Traces that records bring, and that a spout's trees go on with (docs/tracing.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ardea.kafka.record import TRACEPARENT

Continue = Callable[[Any, str], None]
"""An id of a row, and the header of its record."""


def continue_traces(go_on: Continue, ids: Iterable[Any], messages: Iterable[Any]) -> None:
    """Tells of each record with the header ``traceparent``; ``ids``: of the rows that they become."""
    for tup_id, message in zip(ids, messages, strict=True):
        for name, content in message.headers() or ():
            if name == TRACEPARENT and isinstance(content, bytes):
                go_on(tup_id, content.decode("ascii", "replace"))
