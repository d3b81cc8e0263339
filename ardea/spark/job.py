"""A Spark job as a value, and where it is staged."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ardea.context import TopologyContext
from ardea.errors import UserError
from ardea.spark.schema import Column

Start = Literal["early", "complete"]
DRIVER = "driver"
PROGRESS = "progress"
"""The folder, below that of the job, where spout tasks keep how far they are."""


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

    def folder(self, spout: str, context: TopologyContext) -> Path:
        """The staging folder of the component ``spout``, the same for its tasks and its driver.

        Raises:
            UserError: the task has no folder, because no supervisor has started it.
        """
        if (container := os.environ.get("ARDEA_FOLDER")) is None:
            raise UserError(
                f"the Spark spout {spout} needs a topology of real processes",
                hint="Run it with `ardea run`; in ardea.testing let a RowsSpout stand in for it.",
            )
        root = Path(container).parent / "spark" if self.storage is None else Path(self.storage) / context.topology_id
        return root / spout
