"""What travels, seen from outside."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import Header
from ardea.testing.world import World


@pytest.fixture
def headers(monkeypatch) -> list[tuple[str, str, Header]]:
    """(receiver, sender, header) of every message that a process of a simulated cluster takes."""
    seen: list[tuple[str, str, Header]] = []
    heard = World.heard

    def noted(self: World, process: str, source: str, header: Header) -> None:
        seen.append((process, source, header))
        heard(self, process, source, header)

    monkeypatch.setattr(World, "heard", noted)
    return seen
