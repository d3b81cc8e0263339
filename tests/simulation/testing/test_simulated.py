"""Thousands of fault schedules on simulated time: no invariant is broken, no tracked tuple is lost, nothing hangs.

A seed that fails is run again until only the faults that it takes are left, and these are printed.
"""

from __future__ import annotations

import os
import random

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.kit import Schedule
from tests.simulation.schedules import failing, targets
from tests.sizes import size

FIRST, _, LAST = os.environ.get("ARDEA_SEEDS", "").partition(":")
SEEDS = range(int(FIRST or 0), int(LAST or size(40, 100_000, whole=300)))
"""``ARDEA_SEEDS=20000:40000``: a part of the 100,000, from the first to ahead of the last."""
FAULTS = 10
SECONDS = 2.0
ROWS = 40


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word])


class Words(Topology):
    lines = RowsSpout.of(["line"], [[f"{n} a{n % 7}"] for n in range(ROWS)]).spec(par=2)
    split = Split.spec(inputs=[lines], par=2)
    count = CollectBolt.spec(inputs={split: Grouping.fields("word")}, par=2)
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 15}


def schedule_of(seed):
    """Ten faults at processes and links, while tuples are in flight."""
    containers = random.Random(f"containers of {seed}").randint(1, 4)
    return containers, Schedule.seeded(seed, targets(Words, containers), faults=FAULTS, seconds=SECONDS)


def evictions(seed, containers):
    """In every third run a pod is ended in peace besides: a node is drained, of all times now."""
    dice = random.Random(f"evictions of {seed}")
    if dice.randrange(3) == 0:
        number = dice.randint(1, containers)
        yield dice.uniform(0, SECONDS), lambda cluster: cluster.evict(number)


def run(seed, containers, schedule):
    """Raises AssertionError, TimeoutError or what a process raised, if a promise is broken."""
    cost = {"lines": 0.02, "split": 0.005}
    faults = [*schedule.simulated(), *evictions(seed, containers)]
    with Cluster(Words, containers=containers, seed=seed, cost=cost, faults=faults) as cluster:
        cluster.run_until(lambda: cluster.over, 600)
        if cluster.state == "FAILED":
            assert "after the end was declared" in cluster.reason
        else:
            assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
            assert {f"{n}" for n in range(ROWS)} <= {word for (word,) in cluster.record.inputs("count")}


@pytest.mark.soak
@pytest.mark.timeout(20_000)
def test_whatever_happens_no_promise_is_broken():
    """Kills, freezes, cuts and delays of every process, container and link, that to the state among them, ten a run.

    In every third run a container is ended in peace besides.  A container that is frozen for more than ten seconds goes
    on when another one has its place.
    """
    assert failing(SEEDS, schedule_of, run) == []
