"""``ardea top``: what each component and task has done lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ardea.health import Health
from ardea.metrics import Edge, ProcessTotals, Stall, Totals
from ardea.scheduler.control import Status
from ardea.snapshots.status import SnapshotStatus

WINDOW = 5.0
"""Seconds over which rates are taken while the table lives."""


class Row(msgspec.Struct, frozen=True):
    """A component (``task`` is None), one of its tasks, or a manager or master, which has no component.

    All is over the last seconds.

    Rates are a second, latencies seconds; ``capacity`` and ``back_pressure`` are shares of the time (0 to 1) in which
    the executor worked, or was held back, and ``initiates`` that in which the task held spouts back, because too much
    waited for it: ``initiated_seconds`` in all.  Of a component: those of the task that has most of each.  ``cpu``: in
    cores.  ``watermark_lag``: seconds that its watermark is behind its clock, of a component those of the task that is
    furthest behind; None: it has none.
    """

    component: str
    task: str | None
    container: int | None
    emitted: float
    executed: float
    acked: float
    failed: float
    latency: float | None
    latency_p99: float | None
    capacity: float
    back_pressure: float
    initiates: float
    initiated_seconds: float
    pending: int
    exceptions: int
    resident_memory_bytes: int
    cpu: float
    threads: int
    watermark_lag: float | None = None


class TopDocument(msgspec.Struct, frozen=True, kw_only=True):
    """``seconds``: over which the rates of the rows were taken; ``snapshots``: null if none are taken.

    ``edges`` and ``stalls`` are of the master's last sample, which is of five seconds.
    """

    id: str
    state: str
    seconds: float
    health: Health | None
    snapshots: SnapshotStatus | None
    rows: list[Row]
    edges: list[Edge]
    stalls: list[Stall]


def of_window(topology: str, status: Status, window: Window, seconds: float) -> TopDocument:
    """What a master said last, and the rates before it; ``topology`` is the id."""
    return TopDocument(
        id=topology,
        state=status.state,
        seconds=seconds,
        health=status.health,
        snapshots=status.snapshots,
        rows=window.rows(),
        edges=status.edges,
        stalls=status.stalls,
    )


class Window:
    """Readings of the last seconds.  Pure."""

    def __init__(self, spouts: Collection[str], length: float = WINDOW) -> None:
        """``spouts``: whose latency is that of their trees; ``length`` in seconds."""
        self._spouts, self._length = spouts, length
        self._term = 0
        self._readings: deque[tuple[float, dict[tuple[int, str], list[ProcessTotals]]]] = deque()

    def observe(self, now: float, processes: Iterable[ProcessTotals], term: int = 0) -> None:
        """What the master of ``term`` says at ``now`` (seconds, steady); each master has its own sums."""
        if term != self._term:
            self._term = term
            self._readings.clear()
        reading: dict[tuple[int, str], list[ProcessTotals]] = {}
        for each in processes:
            # A task keeps its name wherever it goes; each container has its own managers, and 0 may have two masters.
            container = -1 if each.component else each.container
            reading.setdefault((container, each.process), []).append(each)
        self._readings.append((now, reading))
        while len(self._readings) > 2 and now - self._readings[1][0] >= self._length:
            self._readings.popleft()

    def begun_anew(self) -> Window:
        """Another one for the same components, without readings."""
        return Window(self._spouts, self._length)

    @property
    def seconds(self) -> float:
        """Over which rates are taken; 0: there is one reading, and no rate."""
        return self._readings[-1][0] - self._readings[0][0] if self._readings else 0.0

    def rows(self) -> list[Row]:
        """Each component, followed by its tasks; then the managers and masters that live."""
        if not self._readings:
            return []
        (since, first), (now, last) = self._readings[0], self._readings[-1]
        elapsed = now - since
        tasks: dict[str, list[tuple[ProcessTotals, Totals]]] = {}
        managers = []
        for process, earlier in _pairs(first, last):
            lately = _since(process.totals, earlier.totals if earlier else None)
            if process.component:
                tasks.setdefault(process.component, []).append((process, lately))
            elif process.totals.tasks:  # its container may be gone
                managers.append((process, lately))
        rows = []
        for component, members in sorted(tasks.items()):
            members.sort(key=lambda member: member[0].task)
            own = [self._row(component, process, lately, elapsed) for process, lately in members]
            whole = self._row(component, None, Totals.of_all([lately for _, lately in members]), elapsed)
            busiest = max(each.capacity for each in own)
            held = max(each.back_pressure for each in own)
            initiates = max(each.initiates for each in own)
            longest = max(each.initiated_seconds for each in own)
            most = {"capacity": busiest, "back_pressure": held, "initiates": initiates, "initiated_seconds": longest}
            rows += [msgspec.structs.replace(whole, **most), *own]
        return rows + [self._row("", *manager, elapsed) for manager in managers]

    def _row(self, component: str, process: ProcessTotals | None, lately: Totals, elapsed: float) -> Row:
        of = "complete_latency" if component in self._spouts else "execute_duration"

        def rate(count: float) -> float:
            return round(count / elapsed, 3) if elapsed > 0 else 0.0

        return Row(
            component=component,
            task=process.process if process else None,
            container=process.container if process else None,
            emitted=rate(lately.emitted),
            executed=rate(lately.executed),
            acked=rate(lately.acked),
            failed=rate(lately.failed + lately.timed_out + lately.lost),
            latency=lately.mean(of),
            latency_p99=lately.quantile(0.99, of),
            capacity=min(1.0, rate(lately.busy_seconds)),
            back_pressure=min(1.0, rate(lately.backpressured_seconds)),
            initiates=min(1.0, rate(lately.initiated_seconds)),
            initiated_seconds=round(process.totals.initiated_seconds, 3) if process else 0.0,
            pending=lately.pending,
            exceptions=lately.exceptions,
            resident_memory_bytes=lately.resident_memory_bytes,
            cpu=rate(lately.cpu_seconds),
            threads=lately.threads,
            watermark_lag=lately.watermark_lag_seconds,
        )


def _pairs(
    first: Mapping[tuple[int, str], Sequence[ProcessTotals]], last: Mapping[tuple[int, str], Sequence[ProcessTotals]]
) -> Iterator[tuple[ProcessTotals, ProcessTotals | None]]:
    """Each process of the last reading, with what the first one says of it."""
    for key, present in last.items():
        # Only their order tells two masters apart: where one has come or is forgotten, nobody knows whose is whose.
        known = first.get(key, ())
        yield from zip(present, known if len(known) == len(present) else [None] * len(present), strict=True)


def _since(totals: Totals, earlier: Totals | None) -> Totals:
    """Totals that are lower than before began anew, with the container that keeps them."""
    if earlier is None:
        return totals.since(totals)
    begun = any(getattr(totals, what) < getattr(earlier, what) for what in ("emitted", "executed", "cpu_seconds"))
    return totals if begun else totals.since(earlier)
