"""What is printed: tables for people, one JSON document for programs."""

from __future__ import annotations

import os
import platform
from itertools import groupby

import msgspec
from rich.console import Console
from rich.table import Table

from ardea import __version__
from benchmarks.results import Case, Comparison, Result, SweepRow, defaults_share


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one command measured, and where."""

    command: str
    machine: dict[str, str]
    results: list[Result] = []
    comparisons: list[Comparison] = []
    sweep: list[SweepRow] = []


def machine() -> dict[str, str]:
    """What numbers depend on besides the code."""
    return {
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "ardea": __version__,
    }


def print_json(report: Report) -> None:
    """On stdout."""
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())


def print_tables(report: Report, console: Console) -> None:
    """Only what was measured."""
    console.print("; ".join(f"{name} {value}" for name, value in report.machine.items()))
    console.print(report.command, soft_wrap=True)
    if report.results:
        console.print(_rates(report.results))
        console.print(_uses(report.results))
    for comparison in report.comparisons:
        limits = f"pending {comparison.pending:,}, largest batch {comparison.batch:,}, both in words"
        console.print(f"Against {comparison.command} ({limits})", soft_wrap=True)
        console.print(_rounds(comparison))
    if report.sweep:
        _print_sweep(report.sweep, console)


def title(case: Case) -> str:
    """``words, 2 spouts, 6 counters, 8 containers, 100,000/s``: what tells a case from others."""
    parts = [case.workload, _plural(case.spouts, "spout"), _plural(case.counters, "counter")]
    parts.append(_plural(case.containers, "container"))
    if case.mode == "atmost":
        parts.append("at most once")
    if case.bulk:
        parts.append("by emit_many")
    if case.rate is not None:
        parts.append(f"held to {case.rate:,.0f}/s" if case.rate else "silent")
    return ", ".join(parts)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _table(caption: str | None, *columns: str) -> Table:
    table = Table(title=caption, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def _rates(results: list[Result]) -> Table:
    names = ("words/s", "p50 ms", "p99 ms", "CPU s/M", "beyond idle", "cores", "others", "pending", "batch")
    table = _table("Rate, complete latency, CPU", "case", *names)
    for result in results:
        table.add_row(
            title(result.case),
            _number(result.words_per_second, ",.0f"),
            _number(result.p50_ms, ".2f"),
            _number(result.p99_ms, ".2f"),
            _number(result.cpu_per_million, ".2f"),
            _number(result.net_cpu_per_million, ".2f"),
            _number(result.cores_busy, ".2f"),
            _number(result.other_cores, ".2f"),
            f"{result.case.pending:,}",
            f"{result.case.batch:,}",
        )
    return table


def _uses(results: list[Result]) -> Table:
    names = ("processes", "MiB min", "median", "max", "% core median", "max")
    table = _table("Resident memory and CPU of each process", "case", "kind", *names)
    for result in results:
        for number, (kind, use) in enumerate(result.use.items()):
            table.add_row(
                "" if number else title(result.case),
                kind,
                str(use.processes),
                *(f"{mib:.1f}" for mib in (use.mib_min, use.mib_median, use.mib_max)),
                *(f"{per_cent:.2f}" for per_cent in (use.cpu_median, use.cpu_max)),
            )
    return table


def _rounds(comparison: Comparison) -> Table:
    table = _table(None, "round", "ours, words/s", "baseline, words/s", "ratio")
    for number, each in enumerate(comparison.rounds, 1):
        table.add_row(str(number), f"{each.ours:,.0f}", f"{each.baseline:,.0f}", f"{each.ratio:.3f}")
    table.add_row("median", "", "", f"{comparison.ratio_median:.3f}")
    return table


def _print_sweep(rows: list[SweepRow], console: Console) -> None:
    for knob, group in groupby(rows, key=lambda row: row.knob):
        of_knob = list(group)
        table = _table(knob, "value", "words/s", "p50 ms", "p99 ms")
        for row in of_knob:
            table.add_row(
                f"{row.value:,g}{' (default)' if row.default else ''}",
                _number(row.words_per_second, ",.0f"),
                _number(row.p50_ms, ".2f"),
                _number(row.p99_ms, ".2f"),
            )
        console.print(table)
        console.print(f"The default gives {defaults_share(of_knob):.1%} of the best rate.")
