"""What each task, component and edge did lately, as a topology's master keeps it (docs/console.md, History)."""

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


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """What flows from a stream of ``source`` to ``target``, as the tasks of ``target`` have processed it.

    ``tuples``: since the topology began.  ``rate``: a second, in the master's last sample; None: it is not known.
    """

    source: str
    stream: str
    target: str
    grouping: str
    tuples: int
    rate: float | None


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """A task that holds spouts back, because too much waits for it.

    ``spouts``: the components that it holds back.  ``since``: Unix seconds; in each sample since then it has.  Of the
    last sample: ``share`` of the time in which it did, and ``capacity``, in which it worked, both 0 to 1.
    ``queued_bytes``: input that waits in its process.  ``idle_since``: Unix seconds since which it has held them back
    all the time and has processed nothing; None: it has.
    """

    task: str
    component: str
    spouts: list[str]
    since: float
    share: float
    capacity: float | None
    queued_bytes: int | None
    idle_since: float | None = None
