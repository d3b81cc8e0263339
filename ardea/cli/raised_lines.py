"""What ``describe`` says of exceptions of authors' code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ardea.health import Raised
from ardea.health.words import duration

SHOWN, TASKS = 10, 4
"""Groups, and names of tasks in each."""


def lines(raised: Sequence[Raised], now: float) -> Iterator[str]:
    """One a group; ``now`` in Unix seconds."""
    for group in raised[:SHOWN]:
        names = [*group.tasks]
        who = ", ".join(names[:TASKS]) + (f" and {len(names) - TASKS} more" if len(names) > TASKS else "")
        times = "once" if group.count == 1 else f"{group.count:,} times since {duration(now - group.first)}"
        said = f"{group.type}: {group.message}" if group.message else group.type
        yield f"raised {times} by {who}, last {duration(now - group.last)} ago: {said}" + (
            group.row and f" ({group.row})"
        )
    if len(raised) > SHOWN:
        yield f"raised: {len(raised) - SHOWN} more groups"
