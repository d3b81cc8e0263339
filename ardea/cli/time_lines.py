"""What ``describe`` says of watermarks."""

from __future__ import annotations

from collections.abc import Sequence

from ardea.health.words import duration
from ardea.metrics import ProcessTotals


def lags(processes: Sequence[ProcessTotals]) -> str:
    """``orders 2 s (orders-1), count 4 s (count-0)``: of each component the task furthest behind; empty: none is."""
    worst: dict[str, tuple[float, str]] = {}
    for each in processes:
        lag = each.totals.watermark_lag_seconds
        if lag is not None and lag > worst.get(each.component, (float("-inf"), ""))[0]:
            worst[each.component] = lag, each.process
    return ", ".join(f"{component} {duration(lag)} ({task})" for component, (lag, task) in sorted(worst.items()))
