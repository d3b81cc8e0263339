"""Sums that never go backwards: over the lives of a process, and over the processes of a topology.

A metrics manager sends the master a :class:`Summary`; the master keeps an :class:`Overview`, which ``ardea top``
and the progress line read.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import msgspec.structs

from ardea.health import ProcessRow
from ardea.metrics.series import SERIES, Kind, quantile
from ardea.plan.names import MASTER_CONTAINER

Values = tuple[float, ...]
"""A counter: (value,).  A histogram: the buckets, then the sum."""

K = TypeVar("K", bound=Hashable)

SUMMARY_COUNTERS = (
    "ardea_instance_tuples_emitted_total",
    "ardea_instance_tuples_executed_total",
    "ardea_instance_tuples_acked_total",
    "ardea_instance_tuples_failed_total",
    "ardea_instance_tuples_timed_out_total",
    "ardea_instance_tuples_lost_total",
    "ardea_instance_tuples_given_up_total",
    "ardea_windows_fired_total",
    "ardea_windows_rows_refused_total",
    "ardea_instance_busy_seconds_total",
    "ardea_instance_backpressured_seconds_total",
    "ardea_user_exceptions_total",
    "ardea_process_cpu_seconds_total",
    "ardea_instance_execute_duration_seconds",
    "ardea_spout_complete_latency_seconds",
)
SUMMARY_INITIATED = "ardea_stmgr_backpressure_seconds_total"
"""Summed for each initiator apart, as ``NAME INITIATOR``: a stream manager measures it, and it is said of the task."""
SUMMARY_READ = "ardea_instance_tuples_executed_total"
"""Told in all, and for each stream apart, as ``NAME SOURCE STREAM``: what flows along each edge of the graph."""
SUMMARY_LAG = "ardea_watermark_lag_seconds"
SUMMARY_GAUGES = (
    SUMMARY_LAG,
    "ardea_spout_pending_tuples",
    "ardea_process_resident_memory_bytes",
    "ardea_process_threads",
)
SUMMARY_QUEUE, SUMMARY_INPUT = "ardea_queue_bytes", "data_in"
"""Of the queues of a process only that of its input, under the name alone."""
SUMMARY_HELD = "ardea_stmgr_held_bytes"
"""Of a stream manager, as ``NAME TASK`` by the number of the task that bytes wait for, where any do."""
SUMMARY_USER = "ardea_user_value"
JOB_TASKS, JOB_TASKS_DONE = "job-tasks", "job-tasks-done"
STREAM_BATCHES, STREAM_BATCHES_OPEN = "stream-batches", "stream-batches-open"
TRIDENT_BATCH, TRIDENT_LATENCY = "trident-batch-id", "trident-batch-latency-ms"
SUMMARY_USER_VALUES = (
    JOB_TASKS,
    JOB_TASKS_DONE,
    STREAM_BATCHES,
    STREAM_BATCHES_OPEN,
    TRIDENT_BATCH,
    TRIDENT_LATENCY,
)
"""Values of Ardea's own components, by the names they are registered under, that the master is told, as
``SUMMARY_USER NAME``: how far a job is that runs elsewhere, and which batch was the last."""


MOST = 1 << 53
"""Larger values are nobody's, and sums stay there: they have to be stored and sent."""


def add(a: Values, b: Values) -> Values:
    """Element by element; ValueError: they are not as long."""
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values are not of one series")
    summed = tuple(map(operator.add, a, b))
    return summed if max(summed, default=0.0) <= MOST else tuple(min(each, MOST) for each in summed)


def is_sound(value: float) -> bool:
    """Whether it is a number that can be added up."""
    return -MOST <= value <= MOST


class Lives(Generic[K]):
    """Totals of one process whose counters begin again with each life.

    Whatever arrives, in whatever order, a total never falls.
    """

    __slots__ = ("current", "former", "life")

    def __init__(self) -> None:
        self.life: Any = None
        self.former: dict[K, Values] = {}
        self.current: dict[K, Values] = {}

    def accept(self, life: Any, current: Mapping[K, Values], former: Mapping[K, Values] | None = None) -> bool:
        """Takes the cumulative values of a life, and what somebody else knows of the lives before it.

        Args:
            life: anything that orders; higher means later.
            current: values since that life began; what is missing keeps its last value.
            former: a lower bound for the sum of all lives before.

        Returns:
            False if that life is over; nothing changes then.
        """
        if self.life is not None and life < self.life:
            return False
        if self.life is not None and life > self.life:
            self.former = self.totals()
            self.current = {}
        self.life = life
        _raise(self.current, current)
        _raise(self.former, former or {})
        return True

    def totals(self) -> dict[K, Values]:
        """Sums over all lives."""
        return _added([self.former, self.current])


def _added(many: Iterable[Mapping[K, Values]]) -> dict[K, Values]:
    totals: dict[K, Values] = {}
    for each in many:
        for key, values in each.items():
            totals[key] = add(totals[key], values) if key in totals else values
    return totals


def _raise(known: dict[K, Values], news: Mapping[K, Values]) -> None:
    for key, values in news.items():
        old = known.get(key)
        known[key] = values if old is None else tuple(map(max, old, values))


class TaskSummary(msgspec.Struct, frozen=True, array_like=True):
    """One process of a container; series summed over their own labels, but SUMMARY_INITIATED and SUMMARY_READ."""

    process: str
    component: str
    task: int
    life: int
    former: dict[str, Values]
    current: dict[str, Values]
    gauges: dict[str, float]


class Summary(msgspec.Struct, frozen=True, array_like=True):
    """What a metrics manager tells the master.  ``admission`` of its container orders before any life.

    ``holder``: who keeps its container, as in the hello of a manager; ``supervised``: what the supervisors there say.
    """

    container: int
    admission: int
    processes: list[TaskSummary]
    holder: str = ""
    supervised: list[ProcessRow] = []


class Totals(msgspec.Struct):
    """What one process, or all tasks of a component, did since the topology began.

    ``job_tasks`` and ``job_tasks_done``: of the job that it runs elsewhere, in Spark, at present.
    ``batch``: of a coordinator of Trident the number of the last one that it has committed in this life, of a driver of
    Spark how many micro-batches it has published; 0: none yet.  ``batches_open``: published and not acked.
    ``batch_latency_ms``: from the begin of one to its commit, the mean of lately.  None: it has no batches.
    ``windows_fired``: seen, early and late firings too; ``window_rows_refused``: that are in no window, being late or
    without a stamp.
    ``backpressured_seconds``: held back; ``initiated_seconds``: held spouts back, because too much waited for it.
    ``watermark_lag_seconds``: how far its watermark is behind its clock now, of a component that of the task that is
    furthest behind; None: it has none.
    Latencies are buckets of ``ardea.metrics.SECONDS`` followed by the sum in seconds.
    """

    tasks: int = 0
    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0
    timed_out: int = 0
    lost: int = 0
    given_up: int = 0
    windows_fired: int = 0
    window_rows_refused: int = 0
    exceptions: int = 0
    busy_seconds: float = 0.0
    backpressured_seconds: float = 0.0
    initiated_seconds: float = 0.0
    cpu_seconds: float = 0.0
    execute_duration: Values = ()
    complete_latency: Values = ()
    pending: int = 0
    resident_memory_bytes: int = 0
    threads: int = 0
    job_tasks: int = 0
    job_tasks_done: int = 0
    watermark_lag_seconds: float | None = None
    batch: float | None = None
    batches_open: float | None = None
    batch_latency_ms: float | None = None

    @classmethod
    def of_all(cls, many: Sequence[Totals]) -> Totals:
        """All together."""
        if not many:
            return cls()
        sums = map(sum, zip(*map(_summed, many), strict=True))
        known: dict[str, Any] = dict(zip(_SUMMED, map(min, sums, itertools.repeat(MOST)), strict=True))
        for field, columns in zip(_HISTOGRAMS, zip(*map(_histograms, many), strict=True), strict=True):
            sums = map(sum, zip(*filter(None, columns), strict=True))
            known[field] = tuple(map(min, sums, itertools.repeat(MOST)))
        for field, columns in zip(_FURTHEST, zip(*map(_furthest, many), strict=True), strict=True):
            known[field] = max((each for each in columns if each is not None), default=None)
        return cls(**known)

    def since(self, earlier: Totals) -> Totals:
        """What happened after ``earlier``; what is of now, such as pending and memory, stays."""
        passed: dict[str, Any] = dict(zip(_COUNTED, map(operator.sub, _counted(self), _counted(earlier)), strict=True))
        for field, mine, its in zip(_HISTOGRAMS, _histograms(self), _histograms(earlier), strict=True):
            passed[field] = tuple(map(operator.sub, mine, its)) if mine and its else mine
        return msgspec.structs.replace(self, **passed)

    def quantile(self, q: float, of: str = "complete_latency") -> float | None:
        """Seconds; None when nothing was observed.  ``of``: complete_latency or execute_duration."""
        values: Values = getattr(self, of)
        return quantile(SERIES[_SERIES_OF[of]].buckets, values[:-1], q)

    def mean(self, of: str = "complete_latency") -> float | None:
        """Seconds; None when nothing was observed."""
        values: Values = getattr(self, of)
        count = sum(values[:-1])
        return values[-1] / count if count else None


_SERIES_OF = {
    "emitted": "ardea_instance_tuples_emitted_total",
    "executed": "ardea_instance_tuples_executed_total",
    "acked": "ardea_instance_tuples_acked_total",
    "failed": "ardea_instance_tuples_failed_total",
    "timed_out": "ardea_instance_tuples_timed_out_total",
    "lost": "ardea_instance_tuples_lost_total",
    "given_up": "ardea_instance_tuples_given_up_total",
    "windows_fired": "ardea_windows_fired_total",
    "window_rows_refused": "ardea_windows_rows_refused_total",
    "exceptions": "ardea_user_exceptions_total",
    "busy_seconds": "ardea_instance_busy_seconds_total",
    "backpressured_seconds": "ardea_instance_backpressured_seconds_total",
    "cpu_seconds": "ardea_process_cpu_seconds_total",
    "execute_duration": "ardea_instance_execute_duration_seconds",
    "complete_latency": "ardea_spout_complete_latency_seconds",
    "pending": "ardea_spout_pending_tuples",
    "resident_memory_bytes": "ardea_process_resident_memory_bytes",
    "threads": "ardea_process_threads",
}
_WHOLE = {field.name for field in msgspec.structs.fields(Totals) if field.type is int}
_FURTHEST = {
    "watermark_lag_seconds": (SUMMARY_LAG,),
    "batch": (f"{SUMMARY_USER} {STREAM_BATCHES}", f"{SUMMARY_USER} {TRIDENT_BATCH}"),
    "batches_open": (f"{SUMMARY_USER} {STREAM_BATCHES_OPEN}",),
    "batch_latency_ms": (f"{SUMMARY_USER} {TRIDENT_LATENCY}",),
}
"""Of now; None where it is not known, and of several tasks the largest one.  The gauges that say it."""
_NOW = {"tasks", "pending", "resident_memory_bytes", "threads", "job_tasks", "job_tasks_done"}

_HISTOGRAMS = tuple(field.name for field in msgspec.structs.fields(Totals) if field.default == ())
_COUNTED = tuple({field.name for field in msgspec.structs.fields(Totals)} - _NOW - {*_HISTOGRAMS} - _FURTHEST.keys())
_SUMMED = (*_COUNTED, *_NOW)
_summed, _counted, _histograms, _furthest = (
    operator.attrgetter(*names) for names in (_SUMMED, _COUNTED, _HISTOGRAMS, _FURTHEST)
)


class ProcessTotals(msgspec.Struct, frozen=True):
    """A row of ``ardea top``."""

    container: int
    process: str
    component: str
    task: int
    totals: Totals


class Counts(NamedTuple):
    """What one process has counted, over all its lives; ``heard``: when it was told last, in the seconds of ``accept``.

    ``totals`` are by series, as in a :class:`TaskSummary`; ``task`` is -1 where it is none.
    """

    container: int
    process: str
    task: int
    component: str
    heard: float
    totals: Mapping[str, Values]
    gauges: Mapping[str, float]


class _Process:
    __slots__ = ("component", "gauges", "lives", "seen")

    def __init__(self) -> None:
        self.component = ""
        self.lives: Lives[str] = Lives()
        self.gauges: dict[str, float] = {}
        self.seen = 0.0


class Overview:
    """All processes of a topology, as far as their metrics managers told."""

    def __init__(self, expiry: float = 60.0) -> None:
        """``expiry``: seconds after which a silent process has no pending tuples, memory or threads."""
        self._expiry = expiry
        self._processes: dict[tuple[int, str, int, str], _Process] = {}
        """By container, name, task and holder, empty but for masters: those of two pods are alike otherwise."""

    def accept(self, summary: bytes, now: float) -> Summary:
        """Takes a metrics manager's summary, and returns it; ``now`` in seconds of any steady clock.

        Values that are no number, as an author's gauge may be, and of another shape than their series are left out.

        Raises:
            msgspec.DecodeError, UnicodeDecodeError: it is not one, or holds text that is not UTF-8.
        """
        try:
            decoded = msgspec.msgpack.decode(summary, type=Summary)
        except RecursionError:
            raise msgspec.DecodeError("nested too deep") from None
        holder = decoded.holder if decoded.container == MASTER_CONTAINER else ""
        for report in decoded.processes:
            key = decoded.container, report.process, report.task, holder
            process = self._processes.setdefault(key, _Process())
            if process.lives.accept((decoded.admission, report.life), _sound(report.current), _sound(report.former)):
                process.component, process.seen = report.component, now
                process.gauges = {name: value for name, value in report.gauges.items() if is_sound(value)}
        return decoded

    def expire(self, now: float) -> None:
        """Clears the gauges of silent processes.  Their counters stay as history; a silent master is forgotten."""
        for key, process in [*self._processes.items()]:
            if now - process.seen >= self._expiry:
                process.gauges = {}
                if key[0] == MASTER_CONTAINER:
                    del self._processes[key]

    def counts(self) -> Iterator[Counts]:
        """Every process, in no order; what is given changes with the next summary."""
        for (container, name, task, _), process in self._processes.items():
            lives = process.lives
            totals = lives.totals() if lives.former else lives.current
            yield Counts(container, name, task, process.component, process.seen, totals, process.gauges)

    def processes(self, homes: Mapping[int, int] | None = None) -> list[ProcessTotals]:
        """Every process, by container, name and task; a task that has moved once, with all that it has counted.

        ``homes``: the container of each task, by its number, whose gauges count; of others those of where they were
        heard last.
        """
        initiated, rows = self._initiated(), []
        places: dict[tuple[int, str, int, str], list[tuple[int, _Process]]] = {}
        for (container, name, task, holder), process in sorted(self._processes.items()):
            key = (-1 if process.component else container, name, task, holder)
            places.setdefault(key, []).append((container, process))
        for (_, name, task, _), known in places.items():
            home = homes.get(task) if homes else None
            container, present = max(known, key=lambda place: (place[0] == home, place[1].seen))
            counted = _added(process.lives.totals() for _, process in known)
            totals = _totals(counted, present.gauges, initiated.get(name, 0.0))
            rows.append(ProcessTotals(container, name, present.component, task, totals))
        return sorted(rows, key=lambda row: (row.container, row.process, row.task))

    def _initiated(self) -> dict[str, float]:
        """Seconds for which each task held spouts back."""
        found: dict[str, float] = {}
        for process in self._processes.values():
            if process.component:
                continue  # stream managers say it
            for key, values in process.lives.totals().items():
                name, _, initiator = key.partition(" ")
                if name == SUMMARY_INITIATED:
                    found[initiator] = found.get(initiator, 0.0) + values[0]
        return found


def by_component(processes: Iterable[ProcessTotals]) -> dict[str, Totals]:
    """Sums over the tasks of each."""
    found: dict[str, list[Totals]] = {}
    for row in processes:
        if row.component:
            found.setdefault(row.component, []).append(row.totals)
    return {component: Totals.of_all(totals) for component, totals in found.items()}


def _sound(values: Mapping[str, Values]) -> dict[str, Values]:
    """Those that can be added up."""
    found = {}
    for key, each in values.items():
        series = SERIES.get(key.partition(" ")[0])
        if series and len(each) == (len(series.buckets) + 2 if series.buckets else 1) and all(map(is_sound, each)):
            found[key] = each
    return found


def _totals(values: Mapping[str, Values], gauges: Mapping[str, float], initiated: float) -> Totals:
    fields: dict[str, Any] = {field: int(gauges.get(name, 0)) for field, name in _GAUGES}
    fields["tasks"], fields["initiated_seconds"] = 1 if gauges else 0, initiated
    for field, names in _FURTHEST.items():
        fields[field] = next((gauges[name] for name in names if name in gauges), None)
    fields |= {field: int(values[name][0]) for field, name in _WHOLES if name in values}
    fields |= {field: values[name][0] for field, name in _PARTS if name in values}
    fields |= {field: values[name] for field, name in _SPREADS if name in values}
    return Totals(**fields)


def _told(kind: Kind, *, whole: bool = False) -> list[tuple[str, str]]:
    """Fields of totals, and the series of this kind that say them."""
    return [(f, name) for f, name in _SERIES_OF.items() if SERIES[name].kind is kind and (f in _WHOLE) is whole]


_WHOLES, _PARTS, _SPREADS = _told(Kind.COUNTER, whole=True), _told(Kind.COUNTER), _told(Kind.HISTOGRAM)
_JOBS = {"job_tasks": JOB_TASKS, "job_tasks_done": JOB_TASKS_DONE}
_GAUGES = [*_told(Kind.GAUGE, whole=True), *((field, f"{SUMMARY_USER} {name}") for field, name in _JOBS.items())]
