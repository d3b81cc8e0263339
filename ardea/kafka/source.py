"""What is to be read, and how: what authors say, checked at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from ardea.errors import TopologyError, UserError, printable
from ardea.kafka.marks import PartitionId
from ardea.kafka.sharing import Topics

Start = Literal["committed", "earliest", "latest"] | datetime
Bound = Literal["latest"] | Mapping[tuple[str, int], int]
End = Bound | datetime
UNDECODABLE = "undecodable"
UNDECODABLE_FIELDS = ("topic", "partition", "offset", "key", "value", "error")
BESIDE = 64
"""Bytes of a row of these that are none of its topic, key, value and error, at most."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a spout's tasks read, and how."""

    topics: Topics
    translate: Callable[[Any], Sequence[Any] | None]
    translate_batch: Callable[[list[Any]], Any] | None
    group: str | None
    start: Start
    otherwise: Start
    end: End | None
    deleted: str
    undecodable: str

    def allow_loss(self, what: str) -> None:
        """Raises UserError, unless the author goes on without records that were deleted."""
        if self.deleted == "fail":
            raise UserError(
                f"{what}: records were deleted before they were read",
                hint="Give deleted='earliest' or 'latest' to go on without them.",
            )


def check_end(end: Any, missing: Sequence[str], places: Sequence[PartitionId]) -> None:
    """Raises UserError if a topic or a partition is not there that is to be read to its end; None: to no end.

    ``missing``: topics; ``places``: the partitions that there are.
    """
    gone = list(missing)
    if isinstance(end, Mapping):
        gone += [str(place) for place in sorted(set(end).difference(places))]
    if end is not None and (gone or not places):
        raise UserError(
            f"there is no {', '.join(gone) or 'topic that matches'}, so that it cannot be read to its end",
            hint="Make the topic, or read it without end=, which waits for it.",
        )


def key_and_value(message: Any) -> Sequence[Any]:
    """The default: both as bytes."""
    return (message.key(), message.value())


def check_size(message: Any, most: int) -> None:
    """Raises ValueError if a record is larger than a tuple may be."""
    if (size := record_size(message)) > most:
        raise ValueError(f"{size:,} bytes are more than topology.max.tuple.bytes, {most:,}")


def size_bound(messages: Sequence[Any]) -> int:
    """Bytes that none of these records exceeds: those of the longest value and of the longest key."""
    keys = filter(None, map(type(messages[0]).key, messages))
    return max(map(len, messages)) + max(map(len, keys), default=0)


def record_size(message: Any) -> int:
    """Bytes of value and key."""
    return len(message) + len(message.key() or b"")


def unfit(place: PartitionId, message: Any, error: Exception) -> UserError:
    """Says which record cannot be translated, or is too large, and why."""
    return UserError(
        f"the record at offset {message.offset()} of {place} cannot be emitted: {_said(error)}",
        hint="Correct translate=, or give undecodable='skip' or 'emit'; the record is read again then.",
    )


def unfit_row(place: PartitionId, message: Any, error: Exception, most: int) -> tuple[Any, ...]:
    """The values of UNDECODABLE_FIELDS, without those of the value and the key that no room is for."""
    key, value, said = message.key(), message.value(), _said(error)
    room = most - BESIDE - len(place.topic.encode()) - len(said.encode())
    if record_size(message) > room:
        value = None
        key = None if len(key or b"") > room else key
    return (*place, message.offset(), key, value, said)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {printable(error)}"


def refuse(what: str, problems: Sequence[str]) -> None:
    """Raises TopologyError if there are any."""
    if problems:
        raise TopologyError(
            [f"{what}: {problem}" for problem in problems], hint=f"docs/kafka.md says what {what} takes."
        )


def topic_problems(topics: Any) -> Iterator[str]:
    """Of a list of names, or a pattern."""
    if isinstance(topics, re.Pattern):
        if not isinstance(topics.pattern, str):
            yield f"the pattern of topics is of text, not of bytes: {topics.pattern!r}"
    elif not isinstance(topics, Sequence) or not topics or not all(isinstance(t, str) and t for t in topics):
        yield f"topics are a name, a list of names, or a compiled pattern, not {topics!r}"


def position_problems(what: str, value: Any, words: Sequence[str]) -> Iterator[str]:
    """Of a place to begin at: one of these words, or a datetime."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            yield f"{what}= takes a datetime with a zone, not {value!r}"
    elif value not in words:
        yield f"{what}= takes {', '.join(map(repr, words))} or a datetime, not {value!r}"


def end_problems(end: Any) -> Iterator[str]:
    """Of a place to end at: what bounds, or a datetime."""
    if isinstance(end, datetime):
        yield from position_problems("end", end, ())
    else:
        yield from bound_problems(end)


def bound_problems(end: Any) -> Iterator[str]:
    """Of offsets to end at."""
    if isinstance(end, Mapping):
        for place, offset in end.items():
            match place, offset:
                case (str(), int()), int() if offset >= 0:
                    pass
                case _:
                    yield f"end= takes {{(topic, partition): offset}}, not {place!r}: {offset!r}"
    elif end is not None:
        yield from choice_problems("end", end, ("latest",))


def choice_problems(what: str, value: Any, words: Sequence[str]) -> Iterator[str]:
    """Of one of these words."""
    if value not in words:
        yield f"{what}= takes {', '.join(map(repr, words))}, not {value!r}"
