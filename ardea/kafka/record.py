"""What is written to a topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import msgspec

TRACEPARENT = "traceparent"
"""The header by which W3C has traces go on."""


class Record(msgspec.Struct, frozen=True):
    """What is written.  ``topic`` None: the sink's; ``partition`` None: by the key; texts are written as UTF-8."""

    value: bytes | str | None
    key: bytes | str | None = None
    topic: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | str | None]] = ()

    @property
    def size(self) -> int:
        """Bytes of key and value."""
        return sum(len(part.encode() if isinstance(part, str) else part) for part in (self.key, self.value) if part)

    @property
    def row(self) -> tuple[Any, ...]:
        """Its parts, as a row that travels; ``Record.of`` is the inverse."""
        return msgspec.structs.astuple(self)

    @classmethod
    def of(cls, row: Sequence[Any]) -> Self:
        """See :attr:`row`."""
        value, key, topic, partition, timestamp_ms, headers = row
        return cls(value, key, topic, partition, timestamp_ms, [(name, content) for name, content in headers])

    def traced(self, traceparent: str | None) -> Self:
        """With that header, unless it has one of its own; None: as it is."""
        if traceparent is None or any(name == TRACEPARENT for name, _ in self.headers):
            return self
        return msgspec.structs.replace(self, headers=[*self.headers, (TRACEPARENT, traceparent)])

    def arguments(self, topic: str) -> dict[str, Any]:
        """For ``Producer.produce``; ``topic`` is where it goes if it does not say.

        Raises:
            ValueError: a header's name cannot be written as UTF-8; confluent-kafka would end the process for it.
        """
        chosen: dict[str, Any] = {"topic": self.topic or topic, "value": self.value, "key": self.key}
        if self.partition is not None:
            chosen["partition"] = self.partition
        if self.timestamp_ms is not None:
            chosen["timestamp"] = self.timestamp_ms
        if self.headers:
            chosen["headers"] = list(self.headers)
            for name, *_ in self.headers:
                if isinstance(name, str) and name != name.encode(errors="replace").decode():
                    raise ValueError(f"the header's name {name!r} cannot be written as UTF-8")
        return chosen


def fields_of(tup: Any) -> Record:
    """The default: the fields ``key``, if there is one, and ``value``."""
    return Record(tup["value"], tup["key"] if "key" in tup else None)  # noqa: SIM401 -- no dict
