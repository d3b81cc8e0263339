"""What the topologies here share: leaving results for the test, and waiting for its flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea import Bolt, Spout, TopologyContext


class Leaves:
    """Keeps where the task is; ``leave`` writes what the test will read."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.config = config
        self.context = context
        self.index = context.this_task_index
        self.out = Path(config["test.out"])
        self.begin()

    def begin(self) -> None:
        """Called at the end of ``initialize``."""

    def leave(self, what: Any) -> None:
        file = self.out / f"{self.context.this_component_id}-{self.index}.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps(what))
        new.rename(file)

    def flag(self, name: str) -> bool:
        return (self.out / name).exists()


class LeavingSpout(Leaves, Spout):
    pass


class LeavingBolt(Leaves, Bolt):
    pass
