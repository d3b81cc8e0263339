"""A bolt whose process ends at one row, in a mode in which all goes back then."""

import ctypes
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ardea import Bolt, Spout, Topology
from ardea.keyed import TaskState

TOTAL, KILLS = 2000, 700


class Numbers(Spout):
    outputs = ["number"]
    position = TaskState(default=0)

    def next_tuple(self) -> None:
        if self.position == TOTAL:
            self.finish()
            return
        self.emit([self.position])
        self.position += 1


class Fragile(Bolt):
    seen = TaskState(default=0)

    def process(self, tup: Any) -> None:
        if tup["number"] == KILLS:
            ctypes.string_at(0)  # as a mistake in a library of C
        self.seen += 1

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        self.out = Path(config["test.out"]) / f"{context.this_component_id}-0.json"

    def end_of_input(self) -> None:
        self.out.write_text(json.dumps(self.seen))


class Letters(Fragile):
    seen = TaskState(default=())

    def process(self, tup: Any) -> None:
        self.seen = [*self.seen, tup.values]


class Killing(Topology):
    numbers = Numbers.spec()
    fragile = Fragile.spec(inputs=[numbers])
    letters = Letters.spec(inputs=[fragile["__dead_letter"]])
    config = {"topology.reliability.mode": "EFFECTIVELY_ONCE", "topology.stateful.max.rollbacks.per.row": 1}
