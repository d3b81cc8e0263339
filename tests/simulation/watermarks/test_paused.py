"""A paused topology with event time: watermarks are said again to tasks that are not initialised."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, Timestamps, Topology
from ardea.testing import Cluster

ROWS = 100


class Stamped(Spout):
    outputs = ("n", "at")
    timestamps = Timestamps("at", lateness=1.0)
    acked: set[int] = set()

    def initialize(self, config, context):
        self.left = [n for n in range(ROWS) if n not in self.acked]

    def next_tuple(self):
        if self.left:
            n = self.left.pop(0)
            self.emit((n, float(n)), tup_id=n)
        else:
            self.finish()

    def ack(self, tup_id):
        self.acked.add(tup_id)


class Sees(Bolt):
    seen: list[tuple[int, float | None]] = []

    def process(self, tup):
        self.seen.append((tup["n"], self.watermark))


class Paused(Topology):
    rows = Stamped.spec()
    sees = Sees.spec(inputs={rows: Grouping.fields("n")}, par=2)
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 10}


@pytest.mark.parametrize("victims", [(), ("sees-0",), ("sees-0", "sees-1")])
def test_it_is_updated_again_and_again(victims):
    """Tasks that an update brings, or that have died, hear the watermark before they are initialised."""
    Stamped.acked.clear()
    Sees.seen.clear()
    with Cluster(Paused, seed=3, cost={"rows": 0.05}) as cluster:
        cluster.run_until(lambda: len(Stamped.acked) > 40)
        cluster.deactivate()
        cluster.advance(2)
        for name in victims:
            cluster.kill(name)
        cluster.advance(3)
        for tasks in (3, 2, 4):
            began = cluster.time
            progress = cluster.updated(cluster.update_request(parallelism={"sees": tasks}))
            assert (progress.step, progress.reason, cluster.state) == ("done", "", "PAUSED")
            assert cluster.time < began + 5, "a message timeout is longer"
            cluster.advance(1)
        paused = len(Sees.seen)
        cluster.activate()
        cluster.run_until(lambda: cluster.over, 100)
        assert cluster.state == "SUCCEEDED"
    assert {n for n, _ in Sees.seen} == set(range(ROWS))
    assert all(watermark >= 30 for _, watermark in Sees.seen[paused:]), "it is known to all from the first row on"
