"""What each task and component did between two looks at what metrics managers have told.  Pure."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import add, sub

from ardea.metrics import SECONDS, Counts, Edge, quantile
from ardea.metrics.overview import SUMMARY_HELD, SUMMARY_INITIATED, SUMMARY_QUEUE, SUMMARY_READ
from ardea.metrics.samples import FIELDS
from ardea.plan.physical import PhysicalPlan

Row = tuple[float, ...]
"""A value for each of ``FIELDS``; NaN: it is not known."""
Way = tuple[str, str, str]
"""Source, stream and reader."""
Key = tuple[int, str, int]
"""Container, process and task: a task that has come since one was removed may have the name of that one."""

_COMPLETE, _EXECUTE = "ardea_spout_complete_latency_seconds", "ardea_instance_execute_duration_seconds"
_COUNTERS = (
    "ardea_instance_tuples_emitted_total",
    SUMMARY_READ,
    "ardea_instance_tuples_acked_total",
    "ardea_instance_tuples_failed_total",
    "ardea_instance_tuples_timed_out_total",
    "ardea_instance_tuples_lost_total",
    "ardea_instance_busy_seconds_total",
    "ardea_instance_backpressured_seconds_total",
    "ardea_process_cpu_seconds_total",
)
_GAUGES = ("ardea_process_resident_memory_bytes", "ardea_spout_pending_tuples", SUMMARY_QUEUE)
_HEARD, _AT, _FIRST = 0, 1, 2
_LATENCY = _FIRST + len(_COUNTERS)
"""Of a reading: when it was told, when it was looked at, its counters, and the buckets of its latency if it has any."""
_P50, _P99, _INITIATES, _QUEUED = map(FIELDS.index, ("latency_p50", "latency_p99", "initiates", "queued_bytes"))
_MOST = frozenset(map(FIELDS.index, ("capacity", "back_pressure", "initiates")))
"""Of which a component has those of the task that has most."""
_UNKNOWN: Row = (math.nan,) * len(FIELDS)


class Lately:
    """Looks again and again; each look says what was since the one before.

    ``initiates``: the share of the time, 0 to 1, in which a task held spouts back, by its name.
    """

    def __init__(self) -> None:
        self.initiates: dict[str, float] = {}
        self._rates: dict[Way, float] = {}  # tuples a second; a way that is missing is not known
        self._read: dict[Way, int] = {}  # tuples so far
        self._readings: dict[Key, array[float]] = {}
        self._parts: dict[Key, dict[str, float]] = {}  # streams that a task has read, tasks that a manager paused for

    def look(self, told: Iterable[Counts], plan: PhysicalPlan, now: float) -> dict[str, Row]:
        """The row of each task of the plan and of each component.

        Args:
            told: of every process.
            plan: the present one.
            now: on the clock of ``told``, later than that of the look before.
        """
        self.initiates, self._rates, self._read = {}, {}, {}
        rows: dict[str, Row] = {place.name: _UNKNOWN for place in plan.tasks.values()}
        homes = {(place.container, place.name, number): place.component for number, place in plan.tasks.items()}
        latencies: dict[str, list[float]] = {}
        held: dict[str, float] = {}
        spouts = {component.name for component in plan.logical.spouts}
        for counts in told:
            key = counts.container, counts.process, counts.task
            series = _COMPLETE if counts.component in spouts else _EXECUTE  # every task has both
            reading, former = _reading(counts, series, now), self._readings.get(key)
            news = former is None or reading[_HEARD] > former[_HEARD]
            if news:
                self._readings[key] = reading
            change = list(map(sub, reading, former)) if news and former is not None else None
            self._part(key, counts, 0.0 if change is None else change[_AT], news=news)
            if news and not counts.component:
                _add_held(held, counts.gauges)
            if news and (component := homes.get(key)) is not None:
                latency = _since(former, reading, change)
                rows[counts.process] = _row(change, latency, counts.gauges)
                if latency:
                    known = latencies.get(component)
                    latencies[component] = list(map(add, known, latency)) if known else latency
        self._of_managers(rows, plan, held)
        return rows | {name: _whole(own, latencies.get(name, ())) for name, own in _members(rows, plan)}

    def _of_managers(self, rows: dict[str, Row], plan: PhysicalPlan, held: Mapping[str, float]) -> None:
        """What stream managers have said of tasks; ``held``: bytes, by the number of a task."""
        for number, place in plan.tasks.items():
            share, bytes_ = self.initiates.get(place.name, 0.0), held.get(str(number), 0.0)
            if share or bytes_:
                row = [*rows[place.name]]
                row[_INITIATES] += share
                row[_QUEUED] += bytes_
                rows[place.name] = tuple(row)

    def edges(self, plan: PhysicalPlan) -> list[Edge]:
        """Those of the plan, by their reader, as the last look has found them."""
        found = []
        for reader in plan.logical:
            for read in reader.inputs:
                way = read.component, read.stream, reader.name
                rate = self._rates.get(way)
                found.append(
                    Edge(
                        source=read.component,
                        stream=read.stream,
                        target=reader.name,
                        grouping=read.grouping.describe(),
                        tuples=self._read.get(way, 0),
                        rate=None if rate is None else round(rate, 3),
                    )
                )
        return found

    def _part(self, key: Key, counts: Counts, seconds: float, *, news: bool) -> None:
        """Of a task: what it has read of each stream; of a manager: for how long its tasks have paused spouts.

        ``seconds``: since the reading before; 0: there is none, or nothing new.
        """
        series, words = (SUMMARY_READ, 3) if counts.component else (SUMMARY_INITIATED, 2)
        former, found = self._parts.get(key, {}), {}
        for name, values in counts.totals.items():
            if " " not in name or (said := name.split(" "))[0] != series or len(said) != words:
                continue
            found[name] = values[0]
            rate = (values[0] - former.get(name, 0.0)) / seconds if seconds else None
            if counts.component:
                way = said[1], said[2], counts.component
                self._read[way] = self._read.get(way, 0) + int(values[0])
                if rate is not None:
                    self._rates[way] = self._rates.get(way, 0.0) + rate
            elif rate is not None:
                self.initiates[said[1]] = min(1.0, self.initiates.get(said[1], 0.0) + rate)
        if found and news:
            self._parts[key] = found


def _reading(counts: Counts, latency: str, now: float) -> array[float]:
    """``latency``: the series that has it."""
    totals = counts.totals
    numbers = [totals[name][0] if name in totals else 0.0 for name in _COUNTERS]
    return array("d", [counts.heard, now, *numbers, *totals.get(latency, ())])


def _add_held(held: dict[str, float], gauges: Mapping[str, float]) -> None:
    for name, value in gauges.items():
        if name.startswith(SUMMARY_HELD):
            task = name.partition(" ")[2]
            held[task] = held.get(task, 0.0) + value


def _since(former: array[float] | None, reading: array[float], change: list[float] | None) -> list[float]:
    """The buckets of what was observed in a change; none: nothing was."""
    if former is None or change is None:
        return []
    buckets = change[_LATENCY:-1] if len(former) == len(reading) else reading[_LATENCY:-1].tolist()
    return buckets if any(buckets) else []


def _row(change: list[float] | None, latency: Sequence[float], gauges: Mapping[str, float]) -> Row:
    memory, pending, queued = [gauges.get(name, math.nan) for name in _GAUGES]
    if change is None:
        return (*_UNKNOWN[:-3], memory, pending, queued)
    seconds = change[_AT]
    emitted, executed, acked, failed, timed_out, lost, busy, held, cpu = [n / seconds for n in change[_FIRST:_LATENCY]]
    shares = (min(1.0, busy), min(1.0, held), 0.0)
    rates = (emitted, executed, acked, failed + timed_out + lost)
    return (*rates, *_percentiles(latency), *shares, cpu, memory, pending, queued)


def _members(rows: Mapping[str, Row], plan: PhysicalPlan) -> Iterable[tuple[str, list[Row]]]:
    for component, tasks in plan.component_tasks.items():
        yield component, [rows[plan.tasks[task].name] for task in tasks]


def _whole(rows: Sequence[Row], latency: Sequence[float]) -> Row:
    """That of a component, of those of its tasks."""
    whole = []
    for field, column in enumerate(zip(*rows, strict=True)):
        known = [value for value in column if value == value]  # NaN is not
        whole.append((max(known) if field in _MOST else sum(known)) if known else math.nan)
    whole[_P50], whole[_P99] = _percentiles(latency)
    return tuple(whole)


def _percentiles(latency: Sequence[float]) -> tuple[float, float]:
    if not latency:
        return math.nan, math.nan
    buckets = tuple(latency)
    half, most = quantile(SECONDS, buckets, 0.5), quantile(SECONDS, buckets, 0.99)
    return math.nan if half is None else half, math.nan if most is None else most
