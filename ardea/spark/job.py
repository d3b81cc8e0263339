"""A Spark job as a value, and where it is staged."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.spark.schema import Column
from ardea.spark.storage import below

Start = Literal["early", "complete"]
DRIVER = "driver"
"""What the driver's component is called after its spout's name, and the stream on which spout tasks ask for it."""
PROGRESS = "progress"
"""The folder, below that of the job or of a spout task, where spout tasks keep how far they are."""
SERVE = "serve"
MASTER = "spark.master"
LOCAL = "local[*]"
_ANYWHERE = "192.0.2.1"
"""An address that no machine has (RFC 5737): what leads to it leads to any other network."""


@dataclass(frozen=True, slots=True)
class SparkJob:
    """What :class:`ardea.spark.SparkSpout` was given; there its arguments are documented."""

    function: Callable[[Any], Any]
    columns: tuple[Column, ...]
    partitions: int | None
    rows: int
    start: Start
    deterministic: bool
    file_bytes: int
    storage: str | None

    def place(self, config: Mapping[str, Any]) -> str | None:
        """``serve``, a URI, the path of a folder that all processes see, or None: the topology's own folder.

        Every process of the topology comes to the same result.
        """
        if self.storage is None and ("POD_IP" in os.environ or not is_local(config)):
            return SERVE
        return self.storage

    def shared_folder(self, spout: str, config: Mapping[str, Any], context: TopologyContext) -> Path | None:
        """The staging folder of the component ``spout`` where its tasks and its driver see the same; else None.

        Raises:
            UserError: the task has no folder, because no supervisor has started it.
        """
        container = container_folder(spout)
        match self.place(config):
            case None:
                return container.parent / "spark" / spout
            case str(path) if path.startswith("/"):
                return Path(path) / context.topology_id / spout
            case _:
                return None

    def uri(self, place: str, spout: str, context: TopologyContext) -> str:
        """Of the component ``spout`` below the URI that was given."""
        return below(place, f"{context.topology_id}/{spout}")

    def own_folder(self, context: TopologyContext) -> Path:
        """What this task alone sees; UserError as above."""
        component = context.this_component_id
        return container_folder(component) / "spark" / f"{component}-{context.this_task_index}"


def is_local(config: Mapping[str, Any]) -> bool:
    """Whether Spark runs in the driver's process."""
    return str(config.get(MASTER, LOCAL)).startswith("local")


def own_host() -> str:
    """How this process is reached: by the pod's address on Kubernetes, elsewhere from this machine only."""
    return os.environ.get("POD_IP", "127.0.0.1")


def driver_host(config: Mapping[str, Any]) -> str:
    """How Spark's executors reach the driver: at the address from which this machine reaches the master's.

    That is 127.0.0.1 for a master on loopback.  ``yarn`` names no machine: any other one then.
    """
    if is_local(config) or "POD_IP" in os.environ:
        return own_host()
    _, named, rest = str(config[MASTER]).rpartition("://")
    master = re.split("[:,/]", rest)[0] if named else _ANYWHERE
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((master, 9))  # sends nothing, but finds the route
        except OSError:
            return own_host()  # Spark says that there is no such machine
        return str(probe.getsockname()[0])


def container_folder(component: str) -> Path:
    """Of the container that this task runs in; UserError if no supervisor has started it."""
    if (folder := os.environ.get("ARDEA_FOLDER")) is None:
        raise UserError(
            f"the Spark component {component} needs a topology of real processes",
            hint="Run it with `ardea run`; in ardea.testing let a RowsSpout stand in for it.",
        )
    return Path(folder)
