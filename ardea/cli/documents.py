"""What ``-o json`` says of counts, with the latencies that their histograms stand for."""

from __future__ import annotations

from typing import Any

import msgspec

from ardea.metrics import Totals
from ardea.scheduler.control import Status

_HISTOGRAMS = ("execute_duration", "complete_latency")


def of_totals(totals: Totals) -> dict[str, Any]:
    """Beside each histogram ``NAME`` its ``NAME_seconds``: mean, p50 and p99, null when nothing was observed."""
    document: dict[str, Any] = msgspec.to_builtins(totals)
    for name in _HISTOGRAMS:
        mean, low, high = totals.mean(name), totals.quantile(0.5, name), totals.quantile(0.99, name)
        document[f"{name}_seconds"] = {"mean": mean, "p50": low, "p99": high}
    return document


def of_status(status: Status | None) -> dict[str, Any] | None:
    """What a master said."""
    if status is None:
        return None
    document: dict[str, Any] = msgspec.to_builtins(status)
    document["components"] = {name: of_totals(totals) for name, totals in status.components.items()}
    for row, process in zip(document["processes"], status.processes, strict=True):
        row["totals"] = of_totals(process.totals)
    return document
