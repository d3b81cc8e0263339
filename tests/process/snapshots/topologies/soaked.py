"""Words in step with a clock, of so many keys that most snapshots are deltas; it ends when the test says so."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import effectively

from ardea import Grouping, Topology

KEYS, RATE = 9973, 4000


def word(spout: int, place: int) -> str:
    """Each key once in ``KEYS`` places."""
    return f"w{(place * 7 + spout * 3) % KEYS}"


class Words(effectively.Words):
    """Ends once it has emitted ``test.words`` and the test has said enough."""

    word, rate = staticmethod(word), RATE

    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        super().initialize({**config, "test.ends": False}, context)
        self.out, self.least, self.most = Path(config["test.out"]), self.most, 1 << 62

    def next_tuple(self) -> None:
        super().next_tuple()
        if self.position >= self.least and (self.out / "enough").exists():
            (self.out / f"words-{self.me}.json").write_text(json.dumps(self.position))
            self.finish()


class Count(effectively.Count):
    def initialize(self, config: Mapping[str, Any], context: Any) -> None:
        self.left = Path(config["test.out"]) / f"count-{context.this_task_index}.json"

    def end_of_input(self) -> None:
        self.left.write_text(json.dumps(dict(self.counts)))


class Soaked(Topology):
    words = Words.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})
    config = {
        "topology.reliability.mode": "EFFECTIVELY_ONCE",
        "topology.stateful.checkpoint.interval.secs": 0.5,
        "topology.stmgrs": 2,
    }
