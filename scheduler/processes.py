"""The processes of a local topology, as their supervisors wrote them down: readable without a master."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ardea.health import ProcessRow
from ardea.health.processes import deaths, rows, said
from ardea.plan.names import container_name, container_number
from ardea.scheduler.exits import ExitRecords
from ardea.supervision.records import read_status
from ardea.supervision.supervisor_state import REMOVED


def containers(folder: Path) -> list[int]:
    """Those that the topology of this folder has, 0 (the master's) included; folders of others may be there."""
    return sorted(
        number for name in read_status(folder).get("processes", {}) if (number := container_number(name)) is not None
    )


def processes(folder: Path, now: float) -> list[ProcessRow]:
    """All of a topology's folder, by container; ``now`` in Unix seconds."""
    found = rows(folder, None, now)
    for number in containers(folder):
        found += rows(folder / container_name(number), number, now)
    return found


def metrics_ports(folder: Path) -> dict[int, int]:
    """Where each container of this topology serves ``/metrics``, by its number."""
    found = {}
    for number in containers(folder):
        with contextlib.suppress(FileNotFoundError):  # it is only just starting
            text = (folder / container_name(number) / "metrics.port").read_text().strip()
            if text:  # it is being written otherwise
                found[number] = int(text)
    return found


def died_since(folder: Path, since: float) -> list[str]:
    """What each process of this topology said of its last death, if it died after ``since`` (Unix seconds)."""
    found = {}
    for name, ends in ExitRecords(folder).read().items():
        late = [end for end in deaths(ends) if end.time >= since and said(end) != REMOVED]
        if late:
            found[name] = f"{late[-1].name} died: {said(late[-1])}"
    return [text for _, text in sorted(found.items())]
