"""What a master says, with the latencies that histograms stand for."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict

from ardea.metrics import ProcessTotals, Totals
from ardea.scheduler.control import Status


class Latency(msgspec.Struct, frozen=True):
    """Seconds; null when nothing was observed."""

    mean: float | None
    p50: float | None
    p99: float | None


class Figures(Totals, kw_only=True):
    """Beside each histogram ``NAME`` its ``NAME_seconds``."""

    execute_duration_seconds: Latency
    complete_latency_seconds: Latency


class ProcessFigures(ProcessTotals, frozen=True, kw_only=True):
    """A process, and its figures."""

    totals: Figures


class StatusDocument(Status, frozen=True, kw_only=True):
    """What a master says, with figures."""

    # Nobody appends to what was answered.
    processes: list[ProcessFigures]  # type: ignore[assignment]
    components: dict[str, Figures]  # type: ignore[assignment]


def of_totals(totals: Totals) -> Figures:
    """The totals since the start, and what their histograms stand for."""
    seconds = {f"{name}_seconds": _latency(totals, name) for name in ("execute_duration", "complete_latency")}
    return Figures(**(asdict(totals) | seconds))


def of_status(status: Status | None) -> StatusDocument | None:
    """What a master said."""
    if status is None:
        return None
    processes = [ProcessFigures(**{**asdict(each), "totals": of_totals(each.totals)}) for each in status.processes]
    components = {name: of_totals(totals) for name, totals in status.components.items()}
    return StatusDocument(**{**asdict(status), "processes": processes, "components": components})


def _latency(totals: Totals, name: str) -> Latency:
    return Latency(totals.mean(name), totals.quantile(0.5, name), totals.quantile(0.99, name))
