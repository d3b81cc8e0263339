"""Words in step with a clock, counted effectively once, and written outside unless a file is in the way."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ardea import Bolt, Grouping, Spout, Topology, TwoPhaseSink
from ardea.keyed import KeyedState, TaskState


class Words(Spout):
    outputs = ["word"]
    position = TaskState(default=0)

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        self.began, self.first = time.monotonic(), self.position

    def next_tuple(self) -> None:
        due = self.first + int((time.monotonic() - self.began) * 500)
        while self.position < due:
            self.emit((f"w{self.position % 101}",))
            self.position += 1


class Count(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup: Any) -> None:
        self.counts[tup["word"]] += 1


class Out(TwoPhaseSink):
    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        self.down = Path(config.get("test.down", "/nowhere"))

    def commit(self, mark: Any, rows: Iterable[Any]) -> None:
        if self.down.exists():
            raise ConnectionError("the database is down")


class Remembering(Topology):
    words = Words.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})
    out = Out.spec(inputs=[words])
    config = {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 1.0,
        "topology.stmgrs": 2,
    }
