"""Which task reads which partition: a function of the partition and the number of tasks, and of nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import xxhash

from ardea.kafka.marks import PartitionId

Topics = Sequence[str] | re.Pattern[str]


def owner(place: PartitionId, tasks: int) -> int:
    """The index of its task.  Partitions of one topic go to the tasks in turn; topics begin at different ones."""
    return (xxhash.xxh3_64_intdigest(place.topic.encode()) + place.partition) % tasks


def share(places: Iterable[PartitionId], index: int, tasks: int) -> list[PartitionId]:
    """Those of one task, sorted."""
    return sorted(place for place in places if owner(place, tasks) == index)


def wanted(topics: Topics, existing: Iterable[str]) -> list[str]:
    """The existing topics that are to be read, sorted; a pattern never means Kafka's own, which begin with ``__``."""
    if isinstance(topics, re.Pattern):
        return sorted(name for name in existing if not name.startswith("__") and topics.fullmatch(name))
    return sorted(set(topics).intersection(existing))


def missing(topics: Topics, existing: Iterable[str]) -> tuple[str, ...]:
    """The named topics that are not there, sorted; a pattern names none."""
    return () if isinstance(topics, re.Pattern) else tuple(sorted(set(topics).difference(existing)))


def waits_for(topic: str) -> str:
    """What is said of a named topic that is not there."""
    return f"there is no topic {topic} that may be read; waits for it"
