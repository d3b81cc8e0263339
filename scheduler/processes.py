"""The processes of a local topology, as their supervisors wrote them down: readable without a master."""

from __future__ import annotations

from pathlib import Path

from ardea.health import ProcessRow
from ardea.health.processes import deaths, rows, said
from ardea.plan.names import CONTAINERS
from ardea.scheduler.exits import ExitRecords
from ardea.supervision.supervisor_state import REMOVED


def processes(folder: Path, now: float) -> list[ProcessRow]:
    """All of a topology's folder, by container; ``now`` in Unix seconds."""
    found = rows(folder, None, now)
    numbered = {int(path.name.rpartition("-")[2]): path for path in folder.glob(CONTAINERS)}
    for number, path in sorted(numbered.items()):
        found += rows(path, number, now)
    return found


def metrics_ports(folder: Path) -> dict[int, int]:
    """Where each container of this topology serves ``/metrics``, by its number."""
    found = {}
    for file in folder.glob(f"{CONTAINERS}/metrics.port"):
        text = file.read_text().strip()
        if text:  # it is being written otherwise
            found[int(file.parent.name.rpartition("-")[2])] = int(text)
    return dict(sorted(found.items()))


def died_since(folder: Path, since: float) -> list[str]:
    """What each process of this topology said of its last death, if it died after ``since`` (Unix seconds)."""
    found = {}
    for name, ends in ExitRecords(folder).read().items():
        late = [end for end in deaths(ends) if end.time >= since and said(end) != REMOVED]
        if late:
            found[name] = f"{late[-1].name} died: {said(late[-1])}"
    return [text for _, text in sorted(found.items())]
