"""Samples of hours and days, as PromQL that is asked of a Prometheus and as what its answer says.  Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from ardea.metrics.samples import FIELDS, Samples

POINTS = 240
"""Of one line, about."""
LEAST_STEP = 15
LEAST_WINDOW = 120
"""Seconds over which a rate is taken: two scrapes have to lie in it."""

_COUNTED = {
    "emitted": ("ardea_instance_tuples_emitted_total",),
    "executed": ("ardea_instance_tuples_executed_total",),
    "acked": ("ardea_instance_tuples_acked_total",),
    "failed": tuple(f"ardea_instance_tuples_{how}_total" for how in ("failed", "timed_out", "lost")),
    "cpu": ("ardea_process_cpu_seconds_total",),
}
_MOST = {"capacity": "ardea_instance_busy_seconds_total", "back_pressure": "ardea_instance_backpressured_seconds_total"}
_ADDED = {"resident_memory_bytes": "ardea_process_resident_memory_bytes", "pending": "ardea_spout_pending_tuples"}
_LATENCIES = ("ardea_spout_complete_latency_seconds", "ardea_instance_execute_duration_seconds")
_QUANTILES = {"latency_p50": 0.5, "latency_p99": 0.99}


class Line(msgspec.Struct, frozen=True):
    """One series of a range query: ``values`` are Unix seconds and numbers as text."""

    metric: dict[str, str]
    values: list[tuple[float, str]]


class Span(NamedTuple):
    """From ``first`` to ``last``, whole Unix seconds, a sample each ``step`` seconds."""

    first: int
    last: int
    step: int

    @classmethod
    def of_hours(cls, hours: int, now: float) -> Span:
        """The last ``hours`` before ``now``, Unix seconds; its samples lie at the same times whenever it is asked."""
        step = max(LEAST_STEP, hours * 3600 // POINTS)
        last = int(now) // step * step
        return cls(last - hours * 3600 // step * step, last, step)

    @property
    def times(self) -> list[float]:
        """Of its samples."""
        return [float(at) for at in range(self.first, self.last + 1, self.step)]


class Chosen(NamedTuple):
    """``components``: by name.  ``tasks``: name → number.  Neither: all components."""

    components: Collection[str] = ()
    tasks: Mapping[str, int] = {}


def query(topology: str, chosen: Chosen, span: Span) -> str:
    """All fields of those components and tasks of one topology, by its id, as one expression.

    The series have the labels ``field``, and ``component`` or ``task``; for what a task holds up, ``task`` is its name.
    """
    window, found = max(LEAST_WINDOW, span.step), []
    mine = f"topology_id={_text(topology)}"
    if chosen.components or not chosen.tasks:
        which = _one_of("component", chosen.components) if chosen.components else 'component!=""'
        found += _fields("component", mine, which, window)
    if chosen.tasks:
        found += _fields("task", mine, _one_of("task", map(str, chosen.tasks.values())), window)
    return " or ".join(found)


def samples(lines: Iterable[Line], chosen: Chosen, span: Span) -> Samples:
    """What the answer to :func:`query` says; None: Prometheus has nothing of that time."""
    times = span.times
    names = {str(number): name for name, number in chosen.tasks.items()} | {name: name for name in chosen.tasks}
    known: dict[str, dict[str, list[float | None]]] = {}
    for line in lines:
        field, component, task = (line.metric.get(label, "") for label in ("field", "component", "task"))
        name = component or names.get(task)
        if not name or field not in FIELDS or (component and chosen.components and component not in chosen.components):
            continue
        column = known.setdefault(name, {each: [None] * len(times) for each in FIELDS})[field]
        for at, text in line.values:
            place, beside = divmod(round(at) - span.first, span.step)
            if not beside and 0 <= place < len(times):
                column[place] = _number(text)
    return Samples(float(span.first), float(span.step), times, known)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:  # what answers there need not be a Prometheus
        return None
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _one_of(label: str, names: Iterable[str]) -> str:
    return f"{label}=~{_text('|'.join(re.escape(name) for name in sorted(names)))}"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _fields(label: str, mine: str, which: str, window: int) -> list[str]:
    """Each field, summed by ``label`` over what ``which`` matches."""
    terms = {
        field: f"sum by ({label}) ({_together(f'rate({name}{{{mine},{which}}}[{window}s])' for name in names)})"
        for field, names in _COUNTED.items()
    }
    terms |= {field: f"max by ({label}) (rate({name}{{{mine},{which}}}[{window}s]))" for field, name in _MOST.items()}
    terms |= {field: f"sum by ({label}) ({name}{{{mine},{which}}})" for field, name in _ADDED.items()}
    spreads = [f"sum by (le, {label}) (rate({name}_bucket{{{mine},{which}}}[{window}s]))" for name in _LATENCIES]
    for field, share in _QUANTILES.items():
        # Every task has both histograms.  The quantile of one without observations is NaN, which no comparison keeps.
        terms[field] = " or ".join(f"(histogram_quantile({share}, {each}) >= 0)" for each in spreads)
    terms["initiates"] = _initiates(label, mine, window)
    terms["queued_bytes"] = f"sum by ({label}) ({_waiting(mine, which)})"
    return [f'label_replace({term}, "field", "{field}", "", "")' for field, term in terms.items()]


def _together(terms: Iterable[str]) -> str:
    """Series of several names, which would be the same without it."""
    return " or ".join(f'label_replace({term}, "of", "{number}", "", "")' for number, term in enumerate(terms))


def _initiates(label: str, mine: str, window: int) -> str:
    """Stream managers say it, by the name of the task."""
    rate = f"rate(ardea_stmgr_backpressure_seconds_total{{{mine}}}[{window}s])"
    part = "(.+)-[0-9]+" if label == "component" else "(.+)"
    return f'max by ({label}) (label_replace({rate}, "{label}", "$1", "initiator", "{part}"))'


def _waiting(mine: str, which: str) -> str:
    """In the process, and in stream managers, which know the task's number alone."""
    queue = f'ardea_queue_bytes{{{mine},{which},queue="data_in"}}'
    held = f'label_replace(ardea_stmgr_held_bytes{{{mine}}}, "task", "$1", "destination", "(.+)")'
    whose = f"topk by (task) (1, max by (task, component) ({queue})) >= bool 0"  # one, whatever an update has changed
    both = f"sum by (task) ({held}) * on (task) group_left (component) ({whose})"
    return f'sum by (task, component) ({queue}) or label_replace({both}, "of", "held", "", "")'
