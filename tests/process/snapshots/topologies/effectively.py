"""Words in step with a clock, counted effectively once."""

import time
from collections.abc import Mapping
from typing import Any

from ardea import Bolt, Grouping, Spout, Topology
from ardea.keyed import KeyedState, TaskState

RATE = 2000
"""Words a second, of each spout."""


def word(spout: int, place: int) -> str:
    return f"w{(place * 7 + spout * 3) % 101}"


class Words(Spout):
    outputs = ["word"]
    word, rate = staticmethod(word), RATE
    position = TaskState(default=0)

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        self.me = context.this_task_index
        self.most, self.ends = config["test.words"], config["test.ends"]
        self.began, self.first = time.monotonic(), self.position

    def next_tuple(self) -> None:
        due = self.first + int((time.monotonic() - self.began) * self.rate)
        for place in range(self.position, min(due, self.most)):
            self.emit((self.word(self.me, place),))
            self.position = place + 1
        if self.ends and self.position >= self.most:
            self.finish()


class Count(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup: Any) -> None:
        self.counts[tup["word"]] += 1


class Effectively(Topology):
    words = Words.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})
    config = {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 1.0,
        "topology.stmgrs": 2,
    }
