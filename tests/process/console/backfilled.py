"""A real Prometheus that has scraped a topology for two hours, as far as it knows."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

EVERY, LONG = 30, 7200
"""Seconds between two scrapes, and from the first to the last."""

Labels = Mapping[str, object]
Series = tuple[str, str, Labels, float, float]
"""Name, type, labels, first value, and how much each second adds."""


def of_task(topology: str, component: str, number: int, speed: float) -> Iterator[Series]:
    """What a task says that does ``speed`` tuples a second, a tenth of which fail in three ways."""
    mine = {"topology_id": topology, "container": 1, "component": component, "task": number}
    for what, share in {
        "emitted": 1,
        "executed": 2,
        "acked": 0.5,
        "failed": 0.02,
        "timed_out": 0.03,
        "lost": 0.05,
    }.items():
        yield f"ardea_instance_tuples_{what}", "counter", mine, 0, share * speed
    yield "ardea_instance_busy_seconds", "counter", mine, 0, 0.25 * number
    yield "ardea_instance_backpressured_seconds", "counter", mine, 0, 0.125 * number
    for le in (0.1, 0.2, "+Inf"):
        observed = 0 if le == 0.1 else speed
        yield "ardea_instance_execute_duration_seconds_bucket", "histogram", mine | {"le": le}, 0, observed
        yield "ardea_spout_complete_latency_seconds_bucket", "histogram", mine | {"le": le}, 0, 0  # each task has it
    process = mine | {"process": "heron_instance"}
    yield "ardea_process_cpu_seconds", "counter", process, 0, 0.5
    yield "ardea_process_resident_memory_bytes", "gauge", process, 1e6 * number, 0
    yield "ardea_spout_pending_tuples", "gauge", mine, number, 0
    for queue, size in {"data_in": 100, "data_out": 7}.items():
        yield "ardea_queue_bytes", "gauge", mine | {"queue": queue}, size, 0
    for container in (1, 2):  # both stream managers hold rows for it
        held = {"topology_id": topology, "container": container}
        yield "ardea_stmgr_held_bytes", "gauge", held | {"destination": number}, 1000, 0
    pauses = {"topology_id": topology, "container": 1, "initiator": f"{component}-{number - 1}"}
    yield "ardea_stmgr_backpressure_seconds", "counter", pauses, 0, 0.01 * number


def backfill(promtool: Path, folder: Path, series: list[Series]) -> None:
    """Puts it where a Prometheus of ``folder`` finds it; what is there twice, once."""
    last = int(time.time()) // EVERY * EVERY
    lines: dict[str, list[str]] = {}
    for name, kind, labels, first, speed in {(each[0], str(each[2])): each for each in series}.values():
        family = name.removesuffix("_bucket")
        own = lines.setdefault(family, [f"# TYPE {family} {kind}"])
        said = ",".join(f'{label}="{value}"' for label, value in labels.items())
        end = "_total" if kind == "counter" else ""
        own += [
            f"{name}{end}{{{said}}} {first + speed * past} {last - LONG + past}" for past in range(0, LONG + 1, EVERY)
        ]
    text = folder / "past.txt"
    text.write_text("\n".join(line for own in lines.values() for line in own) + "\n# EOF\n")
    made = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", text, folder / "data"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
