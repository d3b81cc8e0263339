"""What ``describe`` says of watermarks and windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ardea.health.words import duration
from ardea.metrics import ProcessTotals, Totals


def lags(processes: Sequence[ProcessTotals]) -> str:
    """``orders 2 s (orders-1), count 4 s (count-0)``: of each component the task furthest behind; empty: none is."""
    worst: dict[str, tuple[float, str]] = {}
    for each in processes:
        lag = each.totals.watermark_lag_seconds
        if lag is not None and lag > worst.get(each.component, (float("-inf"), ""))[0]:
            worst[each.component] = lag, each.process
    return ", ".join(f"{component} {duration(lag)} ({task})" for component, (lag, task) in sorted(worst.items()))


def windows(components: Mapping[str, Totals]) -> str:
    """``count 1,204 seen, 3 rows refused``: of each component that has any; empty: none has."""
    return ", ".join(
        f"{name} {each.windows_fired:,} seen, {_rows(each.window_rows_refused)} refused"
        for name, each in sorted(components.items())
        if each.windows_fired or each.window_rows_refused
    )


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"
