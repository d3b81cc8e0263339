"""What ``describe`` and ``top`` say of tasks that hold spouts back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ardea.health.words import duration
from ardea.metrics import Stall
from ardea.scheduler.packing.amounts import format_bytes

SHOWN = 4
"""Who does so for longest comes first."""


def facts(stalls: Sequence[Stall], now: float) -> Iterator[tuple[str, str]]:
    """Label and value; ``now`` in Unix seconds."""
    yield from (("Holds back", line(stall, now)) for stall in stalls[:SHOWN])
    yield "Others do, too", f"{len(stalls) - SHOWN} more" if len(stalls) > SHOWN else ""


def line(stall: Stall, now: float) -> str:
    """``count-1 pauses words for 85 % of the time, since 40 s; …``."""
    spouts = ", ".join(stall.spouts)
    said = (
        f"{stall.task} pauses {spouts} for {100 * stall.share:.0f} % of the time, since {duration(now - stall.since)}"
    )
    works = "" if stall.capacity is None else f"it works {100 * stall.capacity:.0f} % of the time"
    waits = "" if not stall.queued_bytes else f"{format_bytes(stall.queued_bytes)} of input wait for it"
    return "; ".join(filter(None, (said, works, waits)))
