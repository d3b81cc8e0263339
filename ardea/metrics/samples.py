"""What each task and component did lately, as a topology's master keeps it (docs/console.md, History)."""

from __future__ import annotations

import msgspec

FIELDS = (
    "emitted",
    "executed",
    "acked",
    "failed",
    "latency_p50",
    "latency_p99",
    "capacity",
    "back_pressure",
    "initiates",
    "cpu",
    "resident_memory_bytes",
    "pending",
    "queued_bytes",
)
"""Of one sample, in the order in which a master keeps them."""


class Samples(msgspec.Struct, frozen=True):
    """Those of some components and tasks.  Times are Unix seconds, ``interval`` seconds.

    ``since``: when the master began to keep samples.  ``times``: ascending, one for each sample.  ``series``: by the
    name of the component or task and the field, one value for each time; None: it is not known.
    """

    since: float
    interval: float
    times: list[float]
    series: dict[str, dict[str, list[float | None]]]
