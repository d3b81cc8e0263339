"""``ardea top``: what each component and task does now."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from ardea.cli import console
from ardea.cli.console import Name, Output, OutputOption
from ardea.cli.progress import seconds
from ardea.cli.tables import fitted
from ardea.errors import Unreachable, escaped
from ardea.metrics import ProcessTotals, Totals
from ardea.plan.names import MASTER_CONTAINER, container_name
from ardea.scheduler.control import Status
from ardea.scheduler.packing.amounts import format_bytes
from ardea.scheduler.schedulers import Handle, Scheduler

INTERVAL = 2.0
WINDOW = 5.0
"""Seconds over which rates are taken while the table lives."""


class Row(msgspec.Struct, frozen=True):
    """A component (``task`` is None), one of its tasks, or a manager or master, which has no component.

    All is over the last seconds.

    Rates are a second, latencies seconds; ``capacity`` and ``back_pressure`` are shares of the time (0 to 1) in which
    the executor worked, or was held back, and ``initiates`` that in which the task held spouts back, because too much
    waited for it: ``initiated_seconds`` in all.  Of a component: those of the task that has most of each.  ``cpu``: in
    cores.
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


class Window:
    """Readings of the last seconds.  Pure."""

    def __init__(self, spouts: Collection[str], length: float = WINDOW) -> None:
        """``spouts``: whose latency is that of their trees; ``length`` in seconds."""
        self._spouts, self._length = spouts, length
        self._readings: deque[tuple[float, dict[tuple[int, str], ProcessTotals]]] = deque()

    def observe(self, now: float, processes: Iterable[ProcessTotals]) -> None:
        """What the master says at ``now`` (seconds, steady)."""
        self._readings.append((now, {_key(each): each for each in processes}))
        while len(self._readings) > 2 and now - self._readings[1][0] >= self._length:
            self._readings.popleft()

    def rows(self) -> list[Row]:
        """Each component, followed by its tasks; then the managers and masters that live."""
        if not self._readings:
            return []
        (since, first), (now, last) = self._readings[0], self._readings[-1]
        elapsed = now - since
        tasks: dict[str, list[tuple[ProcessTotals, Totals]]] = {}
        managers = []
        for key, process in last.items():
            lately = _since(process.totals, first[key].totals if key in first else None)
            if process.component:
                tasks.setdefault(process.component, []).append((process, lately))
            elif process.totals.tasks:  # its container may be gone
                managers.append((process, lately))
        rows = []
        for component, members in sorted(tasks.items()):
            members.sort(key=lambda member: member[0].task)
            own = [self._row(component, process, lately, elapsed) for process, lately in members]
            total = Totals()
            for _, lately in members:
                total = total.plus(lately)
            whole = self._row(component, None, total, elapsed)
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
        )


def _key(process: ProcessTotals) -> tuple[int, str]:
    """A task keeps its name wherever it goes; each container has its own managers."""
    return (-1 if process.component else process.container, process.process)


def _since(totals: Totals, earlier: Totals | None) -> Totals:
    """Totals that are lower than before began anew, with the container that keeps them."""
    if earlier is None:
        return totals.since(totals)
    begun = any(getattr(totals, what) < getattr(earlier, what) for what in ("emitted", "executed", "cpu_seconds"))
    return totals if begun else totals.since(earlier)


def top(
    scheduler: Scheduler,
    name: Name,
    once: Annotated[bool, typer.Option("--once", help="Print one table and end, as without a terminal.")] = False,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two readings.")] = INTERVAL,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what each component and task does now, until Ctrl-C.

    -o json, --once and a stdout that is no terminal show one interval.
    """
    with scheduler.find(name) as found, found.control() as control:
        shape = found.definition().shape
        window = Window({c.name for c in shape.components if c.kind == "spout"})

        def look() -> Status:
            status = control.ask("status")
            window.observe(time.monotonic(), status.processes)
            return status

        status = look()
        out = console.out()
        if once or output is Output.JSON or not out.is_terminal:
            time.sleep(interval)
            status = look()
            rows = window.rows()
            if output is Output.JSON:
                document = {"id": found.id, "state": status.state, "seconds": interval}
                console.print_json(document | msgspec.to_builtins({"health": status.health, "rows": rows}))
            else:
                out.print(_tables(status, rows, out.width), crop=False)
            return
        _live(found, look, window, status, interval)


def _live(found: Handle, look: Callable[[], Status], window: Window, status: Status, interval: float) -> None:
    """A table that is drawn anew, from its first ``status`` on."""
    out = console.out()
    try:
        with Live(_tables(status, window.rows(), out.width), console=out, auto_refresh=False) as live:
            while True:
                time.sleep(interval)
                try:
                    status = look()
                except Unreachable:
                    if found.runs():
                        continue  # a new master is on its way
                    break
                live.update(_tables(status, window.rows(), out.width), refresh=True)
    except KeyboardInterrupt:
        return  # the way to leave it
    console.say(f"{found.id} does not run any more; `ardea describe {found.id}{found.options}` says why")


def _tables(status: Status, rows: Sequence[Row], width: int) -> Group:
    """Components and their tasks; below them the managers and masters."""
    own, others = [row for row in rows if row.component], [row for row in rows if not row.component]
    whole = [number for number, row in enumerate(own) if row.task is None]
    health, troubles = status.health, []
    if health is not None:
        troubles = [Text(escaped(line)) for line in health.lines(time.time())]
    title = f"{status.topology} {status.state}{f' {health.state}' if health else ''}, per second"
    cells = list(map(_cells, own))
    tasks = fitted(("Task", *_NUMBERS), cells, width, least=_LEAST, numbers=_NUMBERS, bold=whole, title=title)
    if not others:
        return Group(*troubles, tasks)
    used = [(f"{container_name(row.container or MASTER_CONTAINER)}/{row.task}", *_used(row)) for row in others]
    return Group(*troubles, tasks, "", fitted(("Process", *_USED), used, width, numbers=_USED))


_USED = ("CPU", "Memory", "Threads")
_COUNTS = ("Container", "Emitted", "Executed", "Acked", "Failed")
_NUMBERS = (*_COUNTS, "Latency", "p99", "Capacity", "Held back", "Holds back", "Pending", *_USED)
_LEAST = ("Container", "Threads", "Holds back", "p99", "Memory", "Held back", "CPU", "Acked", "Pending", "Capacity")
"""The columns that a narrow terminal does without, the first one first."""


def _cells(row: Row) -> tuple[str, ...]:
    name, container = (row.component, "") if row.task is None else (f"  {row.task}", str(row.container))
    rates = (f"{rate:,.0f}" for rate in (row.emitted, row.executed, row.acked, row.failed))
    times = ("-" if value is None else seconds(value) for value in (row.latency, row.latency_p99))
    shares = (f"{100 * share:.0f} %" for share in (row.capacity, row.back_pressure))
    holds = f"{100 * row.initiates:.0f} % ({seconds(row.initiated_seconds)})" if row.initiated_seconds else "-"
    return (name, container, *rates, *times, *shares, holds, f"{row.pending:,}", *_used(row))


def _used(row: Row) -> tuple[str, ...]:
    return f"{100 * row.cpu:.0f} %", format_bytes(row.resident_memory_bytes), str(row.threads)
