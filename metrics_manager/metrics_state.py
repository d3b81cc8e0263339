"""What the processes of one container have reported: snapshots in, samples and a summary out.

Exported counters only grow while this metrics manager lives, whatever becomes of the processes it listens to.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from itertools import accumulate

import msgspec

from ardea.metrics import SERIES, Identity, Kind, Lives, Scope, Series, Snapshot, Summary, TaskSummary
from ardea.metrics.overview import (
    SUMMARY_COUNTERS,
    SUMMARY_GAUGES,
    SUMMARY_HELD,
    SUMMARY_INITIATED,
    SUMMARY_INPUT,
    SUMMARY_QUEUE,
    SUMMARY_READ,
    SUMMARY_USER,
    SUMMARY_USER_VALUES,
    Values,
    add,
    is_sound,
)
from ardea.metrics.sinks import Sample
from ardea.state import paths
from ardea.state.records import RunState

Key = tuple[str, tuple[str, ...]]
"""A series' name and the values of its own labels."""
_FINAL = tuple(state for state in RunState if state.final)


class Result(enum.StrEnum):
    """What became of a snapshot."""

    ACCEPTED = "accepted"
    STALE = "stale"
    INVALID = "invalid"


class _Process:
    __slots__ = ("gauges", "lives", "seen")

    def __init__(self) -> None:
        self.lives: Lives[Key] = Lives()
        self.gauges: dict[Key, float] = {}
        self.seen = 0.0


class MetricsState:
    """The latest of every process; not safe for threads."""

    def __init__(self, expiry: float = 60.0) -> None:
        """``expiry``: seconds of silence after which a process' series are no longer exported."""
        self._expiry = expiry
        self._processes: dict[Identity, _Process] = {}
        self._silent: set[Identity] = set()

    def accept(self, snapshot: bytes, now: float) -> Result:
        """Takes a snapshot.  Series that this version does not know are left out.

        Args:
            snapshot: from ``Registry.snapshot()``.
            now: seconds of a steady clock.
        """
        try:
            decoded = msgspec.msgpack.decode(snapshot, type=Snapshot)
        except (ValueError, RecursionError):
            return Result.INVALID
        counters: dict[Key, Values] = {
            (name, labels): (value,)
            for name, labels, value in decoded.counters
            if _known(name, Kind.COUNTER, labels) and is_sound(value)
        }
        for name, labels, histogram in decoded.histograms:
            series = _known(name, Kind.HISTOGRAM, labels)
            values = (*histogram.buckets, histogram.sum)
            if series and len(values) == len(series.buckets) + 2 and all(map(is_sound, values)):
                counters[name, labels] = values
        who = msgspec.structs.replace(decoded.identity, life=0)
        process = self._processes.setdefault(who, _Process())
        if not process.lives.accept(decoded.identity.life, counters):
            return Result.STALE
        process.gauges = {
            (name, labels): value for name, labels, value in decoded.gauges if _known(name, Kind.GAUGE, labels)
        }
        process.seen = now
        self._silent.discard(who)
        return Result.ACCEPTED

    def expire(self, now: float) -> tuple[Identity, ...]:
        """Stops exporting whoever is silent; what it counted is kept in case that it comes back.

        Returns:
            Those who became silent by this call.
        """
        gone = tuple(
            who
            for who, process in self._processes.items()
            if who not in self._silent and now - process.seen >= self._expiry
        )
        self._silent.update(gone)
        return gone

    @property
    def final_state(self) -> RunState | None:
        """The topology's, as its master has told it; None: it has told of none yet, or is not of this container."""
        for process in self._processes.values():
            for state in _FINAL:
                if process.gauges.get(("ardea_tm_topology_state", (state.value,))):
                    return state
        return None

    @property
    def exported(self) -> int:
        """Processes whose series are exported."""
        return len(self._processes) - len(self._silent)

    def samples(self) -> list[Sample]:
        """Everything exported, sorted by series and labels."""
        found = [
            _sample(SERIES[name], who, labels, values)
            for who, process in self._processes.items()
            if who not in self._silent
            for (name, labels), values in _all(process)
        ]
        return sorted(found, key=lambda sample: (sample.name, tuple(sample.labels.values())))

    def summary(self, container: int, admission: int) -> Summary:
        """What the master needs: per process, series summed over their own labels; silent ones without gauges."""
        return Summary(
            container,
            admission,
            [
                TaskSummary(
                    who.process,
                    who.component,
                    who.task,
                    process.lives.life,
                    _summed(process.lives.former),
                    _summed(process.lives.current),
                    {} if who in self._silent else _summed_gauges(process.gauges),
                )
                for who, process in self._processes.items()
            ],
        )


def _known(name: str, kind: Kind, labels: tuple[str, ...]) -> Series | None:
    series = SERIES.get(name)
    return series if series and series.kind is kind and len(series.labels) == len(labels) else None


def _all(process: _Process) -> Iterator[tuple[Key, Values]]:
    yield from process.lives.totals().items()
    for key, value in process.gauges.items():
        yield key, (value,)


def _sample(series: Series, who: Identity, own: tuple[str, ...], values: Values) -> Sample:
    labels = dict(zip(series.all_labels, _scope_labels(series.scope, who) + own, strict=True))
    if series.kind is not Kind.HISTOGRAM:
        return Sample(series.name, series.kind, labels, values[0])
    counts = [int(count) for count in accumulate(values[:-1])]
    bounds = [*(f"{bound:g}" for bound in series.buckets), "+Inf"]
    return Sample(series.name, series.kind, labels, counts[-1], values[-1], dict(zip(bounds, counts, strict=True)))


def _scope_labels(scope: Scope, who: Identity) -> tuple[str, ...]:
    """Name and id: a name is submitted again and again, each time under another id (decision 79)."""
    values = {
        "topology": paths.name_of(who.topology),
        "topology_id": who.topology,
        "container": str(who.container),
        "process": who.process,
        "component": who.component,
        "task": str(who.task) if who.task >= 0 else "",
    }
    return tuple(values[label] for label in scope.value)


def _summed(values: Mapping[Key, Values]) -> dict[str, Values]:
    found: dict[str, Values] = {}
    for (name, labels), value in values.items():
        if name in SUMMARY_COUNTERS:
            found[name] = add(found[name], value) if name in found else value
        elif name == SUMMARY_INITIATED:
            found[f"{name} {labels[0]}"] = value
        if name == SUMMARY_READ:
            found[" ".join((name, *labels))] = value
    return found


def _summed_gauges(gauges: Mapping[Key, float]) -> dict[str, float]:
    found = {name: value for (name, _), value in gauges.items() if name in SUMMARY_GAUGES}
    held = {f"{name} {labels[0]}": value for (name, labels), value in gauges.items() if name == SUMMARY_HELD and value}
    if (queued := gauges.get((SUMMARY_QUEUE, (SUMMARY_INPUT,)))) is not None:
        found[SUMMARY_QUEUE] = queued
    for metric in SUMMARY_USER_VALUES:
        if (value := gauges.get((SUMMARY_USER, (metric,)))) is not None:
            found[f"{SUMMARY_USER} {metric}"] = value
    return found | held
