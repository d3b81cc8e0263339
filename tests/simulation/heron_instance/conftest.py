"""What travels, seen from outside."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ardea.testing.inside import Heard, overheard


@pytest.fixture
def headers() -> Iterator[list[Heard]]:
    """(receiver, sender, header) of every message that a process of a simulated cluster takes."""
    with overheard() as seen:
        yield seen
