"""The vocabulary of metrics that every process shares; nothing here needs more than msgspec."""

from ardea.metrics.overview import (
    JOB_TASKS,
    JOB_TASKS_DONE,
    Lives,
    Overview,
    ProcessTotals,
    Summary,
    TaskSummary,
    Totals,
)
from ardea.metrics.process import cpu_seconds, observe_process, resident_memory_bytes
from ardea.metrics.registry import Counter, Gauge, Histogram, HistogramValue, Identity, Registry, Snapshot
from ardea.metrics.series import SECONDS, SERIES, TUPLES, Kind, Scope, Series, quantile
from ardea.metrics.user import (
    AssignableMetric,
    CountMetric,
    MeanReducer,
    MultiCountMetric,
    ReducedMetric,
    Reducer,
    UserMetric,
)

__all__ = [
    "JOB_TASKS",
    "JOB_TASKS_DONE",
    "SECONDS",
    "SERIES",
    "TUPLES",
    "AssignableMetric",
    "CountMetric",
    "Counter",
    "Gauge",
    "Histogram",
    "HistogramValue",
    "Identity",
    "Kind",
    "Lives",
    "MeanReducer",
    "MultiCountMetric",
    "Overview",
    "ProcessTotals",
    "ReducedMetric",
    "Reducer",
    "Registry",
    "Scope",
    "Series",
    "Snapshot",
    "Summary",
    "TaskSummary",
    "Totals",
    "UserMetric",
    "cpu_seconds",
    "observe_process",
    "quantile",
    "resident_memory_bytes",
]
