"""Whose stories are printed: those of what is stuck."""

from __future__ import annotations

from collections.abc import Iterable

from ardea.health import ProcessRow
from ardea.plan.names import container_name
from ardea.scheduler.control import Status


def stuck(status: Status, processes: Iterable[ProcessRow]) -> list[str]:
    """The names of what keeps a topology from working, in the order in which people look.

    A task that has not reported has no story yet: that of its container is the nearest.
    """
    processes = list(processes)
    names = ["update"] if status.update is not None and status.update.running else []
    names += [container_name(number) for number in status.missing_containers] + status.silent_tasks
    silent = [p.container for p in processes if p.name in status.silent_tasks and p.container is not None]
    names += map(container_name, silent)
    names += [p.name for p in processes if p.crash_loop or p.state in ("stuck", "silent")]
    if (snapshots := status.snapshots) is not None and (snapshots.waits or snapshots.abandoned or snapshots.rollbacks):
        names.append("snapshots")
    return list(dict.fromkeys(names))
