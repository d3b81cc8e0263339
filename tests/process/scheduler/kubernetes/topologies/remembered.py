"""Words of two spouts, counted effectively once: whatever dies, the counts at the end are exact."""

from __future__ import annotations

import json
import time

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Topology

RATE = 100
"""Words a second, of each spout."""


def word(spout, place):
    return f"w{(place * 7 + spout * 3) % 31}"


class Words(Spout):
    outputs = ["word"]
    position = TaskState(default=0)

    def initialize(self, config, context):
        self.me, self.most = context.this_task_index, config["test.words"]
        self.began, self.first = time.monotonic(), self.position

    def next_tuple(self):
        due = self.first + int((time.monotonic() - self.began) * RATE)
        for place in range(self.position, min(due, self.most)):
            self.emit([word(self.me, place)])
            self.position = place + 1
        if self.position >= self.most:
            self.finish()


class Count(Bolt):
    counts = KeyedState(default=0)

    def process(self, tup):
        self.counts[tup["word"]] += 1

    def committed(self, number):
        self.logger.info("counted %s", json.dumps(dict(self.counts)))


CONFIG = {
    "topology.reliability.mode": "EFFECTIVELY_ONCE",
    "topology.stateful.checkpoint.interval.secs": 2.0,
    "topology.stateful.storage": "/snapshots",
    "topology.stmgrs": 2,
    "heron.kubernetes.volumes": [
        {"name": "snapshots", "mountPath": "/snapshots", "persistentVolumeClaim": {"claimName": "snapshots"}}
    ],
}


class Remembered(Topology):
    words = Words.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})
    config = CONFIG


class Again(Topology):
    """With more counters."""

    words = Words.spec(par=2)
    count = Count.spec(par=3, inputs={words: Grouping.fields("word")})
    config = CONFIG
