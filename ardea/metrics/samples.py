"""What each task, component and edge did lately, as a topology's master keeps it (docs/console.md, History)."""

from __future__ import annotations

from bisect import bisect_right

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

KEPT = 900.0
"""Seconds for which a sample is kept."""
MOST_NAMES = 100
"""That one question may be about."""


class Samples(msgspec.Struct, frozen=True):
    """Those of some components and tasks.  Times are Unix seconds, ``interval`` seconds.

    ``since``: when the master began to keep samples.  ``times``: ascending, one for each sample.  ``series``: by the
    name of the component or task and the field, one value for each time; None: it is not known.
    """

    since: float
    interval: float
    times: list[float]
    series: dict[str, dict[str, list[float | None]]]

    def after(self, since: float) -> Samples:
        """Those later than ``since``, in Unix seconds."""
        first = bisect_right(self.times, since)
        series = {name: {f: column[first:] for f, column in own.items()} for name, own in self.series.items()}
        return msgspec.structs.replace(self, times=self.times[first:], series=series)

    def followed_by(self, later: Samples) -> Samples | None:
        """Both, without those of more than fifteen minutes before the last; None: they do not belong together."""
        mine, its = (self.since, self.interval, self.series.keys()), (later.since, later.interval, later.series.keys())
        if mine != its:
            return None
        times = [*self.times, *later.times]
        series = {
            name: {field: [*column, *later.series[name][field]] for field, column in own.items()}
            for name, own in self.series.items()
        }
        both = msgspec.structs.replace(later, times=times, series=series)
        return both.after(times[-1] - KEPT) if times else both


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
    ``queued_bytes``: input that waits for it.  ``idle_since``: Unix seconds since which it has held them back
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
