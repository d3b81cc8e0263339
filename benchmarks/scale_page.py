"""What docs/scale.md shows of simulated sizes: a table for quiet seconds, one for what happens once, a curve."""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchmarks.scale import ScaleResult, slope


def page(results: Sequence[ScaleResult]) -> str:
    """Slopes are over the whole range."""
    return "\n".join([*_seconds(results), "", *_slopes(results), "", *_curve(results), "", *_events(results)])


def _seconds(results: Sequence[ScaleResult]) -> list[str]:
    return [
        "| Containers | Manager, ms: awake | rest | at a rate | Master, ms: awake | rest | Messages: awake | rest |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {each.containers} | {awake.manager_ms:.2f} | {rest.manager_ms:.2f} | {rate.manager_ms:.2f} |"
            f" {awake.master_ms:.2f} | {rest.master_ms:.2f} | {awake.messages:,.0f} | {rest.messages:,.0f} |"
            for each in results
            for awake, rest, rate in [[each.costs[name] for name in ("awake", "rest", "rate")]]
        ),
    ]


def _slopes(results: Sequence[ScaleResult]) -> list[str]:
    first, last = results[0].costs, results[-1].costs
    growth = results[-1].containers / results[0].containers
    awake, rest, rate = (slope(last[n].manager_ms / first[n].manager_ms, growth) for n in ("awake", "rest", "rate"))
    master = slope(last["rest"].master_ms / first["rest"].master_ms, growth)
    manager = f"a manager awake {awake:.2f}, at rest {rest:.2f}, at a rate {rate:.2f}"
    return [f"Slopes, from first to last: {manager}; the master at rest {master:.2f}."]


def _events(results: Sequence[ScaleResult]) -> list[str]:
    names = ("start", "update", "death", "end")
    return [
        "| Containers | Start, CPU s | Start: manager, ms | master, ms | Update | | Death | | End | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {each.containers} | {each.start_cpu:.1f} |"
            + "".join(f" {each.costs[name].manager_ms:,.0f} | {each.costs[name].master_ms:,.0f} |" for name in names)
            for each in results
        ),
    ]


def _curve(results: Sequence[ScaleResult]) -> list[str]:
    awake, rest = ([each.costs[name].manager_ms for each in results] for name in ("awake", "rest"))
    return [
        "```mermaid",
        "xychart-beta",
        '  title "CPU of a manager, ms a second: awake above, at rest below"',
        f"  x-axis containers [{', '.join(str(each.containers) for each in results)}]",
        f"  y-axis ms 0 --> {math.ceil(max(awake))}",
        f"  line [{', '.join(f'{ms:.2f}' for ms in awake)}]",
        f"  line [{', '.join(f'{ms:.2f}' for ms in rest)}]",
        "```",
    ]
