"""The next version of `effectively.py`: another name, more counters, and a state that the former had not."""

from typing import Any

import effectively

from ardea import Grouping, Topology
from ardea.keyed import KeyedState


class Count(effectively.Count):
    longest = KeyedState(default=0)

    def process(self, tup: Any) -> None:
        super().process(tup)
        self.longest[tup["word"]] = len(tup["word"])


class Wider(Topology):
    words = effectively.Words.spec(par=2)
    count = Count.spec(par=3, inputs={words: Grouping.fields("word")})
    config = {
        "topology.stmgrs": 2,
        "topology.stateful.checkpoint.interval.secs": 1.0,
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
    }
