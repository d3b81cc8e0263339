"""Graphite's plaintext protocol over TCP, with tags (Graphite 1.1 and later)."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from ardea.metrics.sinks import Sample, convert_config

_ODD = re.compile(r"[;~\s!^=]")


class GraphiteConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``timeout`` in seconds, to connect, and for a send that does not advance; ``prefix`` goes before each name."""

    host: str
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 2003
    prefix: str = ""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=86400)] = 5.0


class GraphiteSink:
    """Writes ``prefix + name;label=value;… value timestamp`` lines.

    A histogram becomes ``name_count``, ``name_sum`` and one ``name_bucket`` a bound, with the tag ``le``.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = convert_config("graphite", config, GraphiteConfig)
        self._socket: socket.socket | None = None

    def open(self) -> None:
        """Connects."""
        self._socket = socket.create_connection((self._config.host, self._config.port), self._config.timeout)

    def write(self, timestamp: float, samples: Sequence[Sample]) -> None:
        """Sends one line a value."""
        assert self._socket is not None
        lines = (
            f"{self._config.prefix}{line} {int(timestamp)}\n".encode()
            for sample in samples
            for line in plaintext(sample)
        )
        left = memoryview(b"".join(lines))
        while (
            left
        ):  # not sendall(), whose time is that of all of it: a slow receiver would get the same again and again
            left = left[self._socket.send(left) :]

    def close(self) -> None:
        """Disconnects."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def plaintext(sample: Sample) -> Iterator[str]:
    """``name;tag=value value`` for each number in a sample."""
    # Graphite refuses empty tag values; a missing tag means the same.
    tags = "".join(f";{name}={_ODD.sub('_', value)}" for name, value in sample.labels.items() if value)
    if sample.buckets is None:
        yield f"{sample.name}{tags} {sample.value}"
        return
    yield f"{sample.name}_count{tags} {sample.value}"
    yield f"{sample.name}_sum{tags} {sample.sum}"
    for bound, count in sample.buckets.items():
        yield f"{sample.name}_bucket{tags};le={bound} {count}"
