"""``ardea top``: what each component and task does now."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from ardea.cli import console, stall_lines
from ardea.cli.console import Name, Output, OutputOption, finite
from ardea.cli.keys import Keys
from ardea.cli.progress import seconds
from ardea.cli.snapshot_lines import line
from ardea.cli.tables import fitted
from ardea.cli.top_view import SORTS, View
from ardea.documents.top import Row, Window, of_window
from ardea.errors import Unreachable, UsageError, escaped
from ardea.health import Health, HealthState, Trouble
from ardea.health.words import duration
from ardea.plan.names import MASTER_CONTAINER, TOPOLOGY_MASTER, container_name
from ardea.scheduler.control import Status
from ardea.scheduler.packing.amounts import format_bytes
from ardea.scheduler.schedulers import Handle, Scheduler

INTERVAL = 2.0
BUSY, HELD = 0.9, 0.5
"""Shares of the time from which on a row is yellow: at work, and held back."""
FEWEST = 3
"""Lines of tasks that a low terminal shows at least."""


def top(
    scheduler: Scheduler,
    name: Name,
    once: Annotated[bool, typer.Option("--once", help="Print one table and end, as without a terminal.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.2, max=86_400, callback=finite, help="Seconds between two readings.")
    ] = INTERVAL,
    sort: Annotated[str, typer.Option(metavar="COLUMN", help=f"The largest first: {', '.join(SORTS)}.")] = "",
    wanted: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="Show only components and tasks whose names contain this.")
    ] = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """Show what each component and task does now, until q or Ctrl-C.

    -o json, --once and a stdout that is no terminal show one interval.
    """
    if sort and sort not in SORTS:
        raise UsageError(f"--sort takes one of {', '.join(SORTS)}, not {sort!r}")
    with scheduler.find(name) as found, found.control() as control:
        shape = found.definition().shape
        spouts = frozenset(c.name for c in shape.components if c.kind == "spout")
        window, view = Window(spouts), View(spouts, sort, wanted)

        def look() -> Status:
            status = control.ask("status")
            window.observe(time.monotonic(), status.processes, status.term)
            return status

        out = console.out()
        if once or output is Output.JSON or not console.draws(out):
            look()
            time.sleep(interval)
            status = look()
            if output is Output.JSON:
                console.print_json(msgspec.to_builtins(of_window(found.id, status, window, interval)))
            else:
                out.print(tables(status, window.rows(), out.width, view), crop=False)
            return
        _live(found, look, window, view, interval)


def _live(found: Handle, look: Callable[[], Status], window: Window, view: View, interval: float) -> None:
    """Tables that are drawn anew at each reading and each key."""
    out, status = console.out(), look()
    heard = time.time()
    try:
        with Keys() as keys, Live(console=out, auto_refresh=False, screen=True) as live:
            while True:
                due = time.monotonic() + interval
                while (left := due - time.monotonic()) > 0:
                    live.update(tables(status, window.rows(), out.width, view, out.height), refresh=True)
                    view.typed(keys.wait(left), page=max(FEWEST, out.height // 2))
                    if view.over:
                        return
                try:
                    status, heard = look(), time.time()
                except Unreachable as error:
                    if not found.runs():
                        break
                    silent = Trouble(TOPOLOGY_MASTER, heard, f"{error.message}; what is shown is from before")
                    status = msgspec.structs.replace(status, health=Health(HealthState.UNREACHABLE, [silent]))
    except KeyboardInterrupt:
        return  # the other way to leave it
    console.say(f"{found.id} does not run any more; `ardea describe {found.id}{found.options}` says why")


def tables(status: Status, rows: Sequence[Row], width: int, view: View, height: int | None = None) -> Group:
    """Components and their tasks; below them the managers and masters.  ``height``: of a terminal with keys."""
    chosen = view.chosen(rows)
    own, others = [row for row in chosen if row.component], [row for row in chosen if not row.component]
    health, where = status.health, ""
    parts: list[RenderableType] = [Text(escaped(said)) for said in health.lines(time.time())] if health else []
    if status.snapshots is not None:
        parts.append(Text(escaped(line(status.snapshots))))
    parts += [Text(escaped(stall_lines.line(stall, time.time()))) for stall in status.stalls[:1]]
    if height is not None:
        others, more = others[: max(FEWEST, height // 4)], max(0, len(others) - max(FEWEST, height // 4))
        used = len(parts) + len(others) + 6 + bool(more)
        own, where = view.window(own, max(FEWEST, height - used))
    title = f"{status.topology} {status.state}{f' {health.state}' if health else ''}, per second"
    styles = {number: _style(row) for number, row in enumerate(own)}
    cells = list(map(_cells, own))
    numbers: tuple[str, ...] = _NUMBERS
    if any(row.watermark_lag is not None for row in rows):
        numbers = (*numbers, "Time lag")
        cells = [(*cell, _lag(row)) for cell, row in zip(cells, own, strict=True)]
    parts.append(
        fitted(
            ("Task", *numbers), cells, width,
            least=_LEAST, numbers=numbers, styles=styles, title=title, caption=height is None,
        )
    )  # fmt: skip
    if where:
        parts.append(Text(where, style="dim"))
    if others:
        memory = [(f"{container_name(row.container or MASTER_CONTAINER)}/{row.task}", *_used(row)) for row in others]
        parts += ["", fitted(("Process", *_USED), memory, width, numbers=_USED)]
    if height is not None:
        parts += [Text(f"and {more} other managers", style="dim")] if more else []
        parts.append(Text(view.line, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _style(row: Row) -> str:
    """Components are bold; what is wrong is red, what may soon be is yellow."""
    wrong = "red" if row.failed or row.exceptions else ""
    busy = "yellow" if row.capacity >= BUSY or row.back_pressure >= HELD else ""
    return " ".join(filter(None, ("bold" if row.task is None else "", wrong or busy)))


_USED = ("CPU", "Memory", "Threads")
_COUNTS = ("Container", "Emitted", "Executed", "Acked", "Failed")
_NUMBERS = (*_COUNTS, "Latency", "p99", "Capacity", "Held back", "Holds back", "Pending", *_USED)
_LEAST = ("Container", "Threads", "Holds back", "p99", "Held back", "CPU", "Acked", "Pending", "Capacity", "Memory")
"""The columns that a narrow terminal does without, the first one first."""


def _cells(row: Row) -> tuple[str, ...]:
    name, container = (row.component, "") if row.task is None else (f"  {row.task}", str(row.container))
    rates = (f"{rate:,.0f}" for rate in (row.emitted, row.executed, row.acked, row.failed))
    times = ("-" if value is None else seconds(value) for value in (row.latency, row.latency_p99))
    shares = (f"{100 * share:.0f} %" for share in (row.capacity, row.back_pressure))
    holds = f"{100 * row.initiates:.0f} % ({seconds(row.initiated_seconds)})" if row.initiated_seconds else "-"
    return (name, container, *rates, *times, *shares, holds, f"{row.pending:,}", *_used(row))


def _lag(row: Row) -> str:
    return "-" if row.watermark_lag is None else duration(row.watermark_lag)


def _used(row: Row) -> tuple[str, ...]:
    return f"{100 * row.cpu:.0f} %", format_bytes(row.resident_memory_bytes), str(row.threads)
