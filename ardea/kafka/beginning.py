"""Where a topology begins to read, decided once and by one task.  Pure.

Task 0 *draws the line*: it commits, in one request, where every partition begins, with the run's mark as metadata.  A
task reads only behind a line.  A partition without the mark, once there is a line, is younger than the run: it is read
from its first record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ardea.kafka.marks import PartitionId

MARK = "ardea:"


class Stored(NamedTuple):
    """What the group has committed for a partition; ``offset`` None: nothing."""

    offset: int | None
    metadata: str = ""


class Contested(Exception):  # noqa: N818 -- says what is, not that somebody erred
    """Another run commits to the group; its id."""


def mark_of(run: str) -> str:
    """The metadata of all that this run commits."""
    return MARK + run


def drawn(stored: Mapping[PartitionId, Stored], run: str) -> bool:
    """Whether this run has begun."""
    return any(found.metadata == mark_of(run) for found in stored.values())


def line(
    places: Sequence[PartitionId],
    stored: Mapping[PartitionId, Stored],
    chosen: Mapping[PartitionId, int],
    *,
    keep: bool,
) -> dict[PartitionId, int]:
    """Where each partition begins.

    Args:
        places: all partitions that there are.
        stored: what was committed before.
        chosen: where those begin that are not kept.
        keep: begin where somebody has committed.
    """
    begins = {}
    for place in places:
        offset = stored[place].offset if keep and place in stored else None
        begins[place] = chosen[place] if offset is None else offset
    return begins


def resume(found: Stored | None, first: int, run: str) -> int:
    """Where a task goes on with a partition, behind the line.

    An offset without a mark was committed by somebody else on purpose, by Kafka's tools for example, and counts.

    Args:
        found: what is committed.
        first: the partition's first record.
        run: this run.

    Raises:
        Contested: another run has committed.
    """
    if found is None or found.offset is None:
        return first
    if found.metadata.startswith(MARK) and found.metadata != mark_of(run):
        raise Contested(found.metadata.removeprefix(MARK))
    return found.offset
