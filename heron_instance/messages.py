"""What an executor hands to the gateway."""

from __future__ import annotations

from dataclasses import dataclass

from ardea.protocol.wire_pb2 import Header


@dataclass(frozen=True, slots=True)
class OutMessage:
    """One message."""

    header: Header
    frames: list[bytes]
    rows: int
    size: int
