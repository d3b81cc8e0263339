"""What the processes of a topology, their containers and their files are called, wherever it runs."""

from __future__ import annotations

TOPOLOGY_MASTER = "topology-master"
STREAM_MANAGER = "stream-manager"
METRICS_MANAGER = "metrics-manager"
MASTER_CONTAINER = 0
"""The number of the container in which the master runs, or the masters."""
_CONTAINER = "container-"
CONTAINERS = f"{_CONTAINER}*"
"""The pattern of :func:`container_name`."""
DRPC_LABEL = "drpc.ardea.dev/"
"""Begins the label of a component that serves a function of DRPC, whose name follows."""
LEFT = "left"
"""A file in the manager's folder: the container is about to be ended, and the manager has emptied it."""


def container_name(number: int) -> str:
    """What the container is called, and its folder below the topology's."""
    return f"{_CONTAINER}{number}"


def container_number(name: str) -> int | None:
    """The inverse; None: it is the name of a process."""
    prefix, number = name[: len(_CONTAINER)], name[len(_CONTAINER) :]
    return int(number) if prefix == _CONTAINER and number.isdecimal() else None


def of_a_task(container: int | None, process: str) -> bool:
    """Whether a process that is called so in that container runs a task, and nothing of the engine's."""
    return container != MASTER_CONTAINER and process not in (STREAM_MANAGER, METRICS_MANAGER)
