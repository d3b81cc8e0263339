"""A stream manager's limits and counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ardea.config import Settings


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """Limits of one manager; bytes and seconds."""

    queue_bytes: int = 8 << 20
    high_bytes: int = 100 << 20
    low_bytes: int = 50 << 20

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> FlowSettings:
        """Those of a topology's configuration."""
        settings = Settings.of(config)
        return cls(settings.queue_bytes, settings.high_watermark_mb << 20, settings.low_watermark_mb << 20)


SIZES = 18


@dataclass(slots=True)
class ManagerStatistics:
    """Counters only grow.  ``sizes[k]``: batches of at most 2**k rows, and more than half of that."""

    dropped_stale: int = 0
    malformed: int = 0  # messages
    rows: int = 0
    sizes: list[int] = field(default_factory=lambda: [0] * SIZES)

    def batch(self, rows: int) -> None:
        """So many rows leave for their task."""
        self.rows += rows
        self.sizes[min((rows - 1).bit_length(), SIZES - 1)] += 1
