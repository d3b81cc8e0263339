"""Fault schedules from seeds: processes die and links fail with tuples in flight, and it ends well.

A seed that fails, fails again: ``pytest -k "schedule and 137"``, then look at ``cluster.story("count-0")``.
"""

from __future__ import annotations

import itertools
import logging
import random

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout

ROWS = 60
SEEDS = 50


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word])


class Words(Topology):
    lines = RowsSpout.of(["line"], [[f"{n} a{n % 7} b{n % 11}"] for n in range(ROWS)]).spec(par=2)
    split = Split.spec(inputs=[lines], par=2)
    count = CollectBolt.spec(inputs={split: Grouping.fields("word")}, par=3)
    config = {"topology.message.timeout.secs": 10}


def links(cluster):
    """Pairs of processes that talk to each other."""
    managers = [name for name in cluster.names if name.startswith("manager-")]
    between = list(itertools.combinations(managers, 2))
    upwards = [*itertools.product(managers, ["master", "state"]), ("master", "state")]
    inside = [(f"manager-{task.container}", task.name) for task in cluster.plan.tasks.values()]
    return between + upwards + inside


def schedule(cluster, dice):
    """Kills and network faults in the first seconds, when tuples are in flight; links heal."""
    network = cluster.network
    for _ in range(dice.randint(0, 3)):
        victim = dice.choice(cluster.names)
        cluster.at(dice.choice([dice.uniform(0, 0.01), dice.uniform(0, 3)]), lambda c, name=victim: c.kill(name))
    for _ in range(dice.randint(0, 3)):
        one, other = dice.choice(links(cluster))
        begin = dice.choice([dice.uniform(0, 0.01), dice.uniform(0, 2)])
        verb, *how = dice.choice(
            [
                (network.cut,),
                (network.delay, dice.uniform(0, 1)),
                (network.drop, dice.choice([0.1, 0.5])),
            ]
        )
        cluster.at(begin, lambda c, verb=verb, ends=(one, other), how=how: verb(*ends, *how))
        cluster.at(begin + dice.uniform(0, 2), lambda c, ends=(one, other): network.heal(*ends))


@pytest.fixture(autouse=True)
def quiet():
    """Nothing here is worth a line on standard error."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_schedule(seed):
    """Everything is counted at least once; only what dies after the declared end may fail the topology."""
    dice = random.Random(seed)
    costs = {name: dice.choice([1e-5, 1e-3, 5e-3]) for name in ("lines", "split", "count")}
    with Cluster(Words, containers=dice.randint(1, 3), seed=seed, cost=costs) as cluster:
        schedule(cluster, dice)
        if seed % 2:
            cluster.run_until(lambda: cluster.state != "RUNNING", 300)
            cluster.advance(dice.uniform(0, 0.001))
            cluster.kill(dice.choice(cluster.names))
        cluster.run_until(lambda: cluster.over, 300)
        if cluster.state == "FAILED":
            assert "after the end was declared" in cluster.reason
        else:
            assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
            assert {f"{n}" for n in range(ROWS)} <= {word for (word,) in cluster.record.inputs("count")}
