"""Many containers: ten of their managers die at once, and the master, while an update is under way; seeds of faults."""

from __future__ import annotations

import logging
import random

import pytest

from ardea import Bolt, Grouping, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout
from tests.simulation.test_faults import schedule
from tests.sizes import size

CONTAINERS = size(12, 64, whole=64)
DYING = size(4, 10, whole=10)
SEEDS = size(1, 200, whole=4)
ROWS = 100
COST = {"lines": 0.1, "split": 0.005}


@pytest.fixture(autouse=True)
def quiet():
    """Nothing here is worth a line on standard error."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word])


def words(containers):
    """In each container a spout, a bolt that splits and one that counts."""
    lines = RowsSpout.of(["line"], [[f"{n} a{n % 7}"] for n in range(ROWS)]).spec(par=containers, name="lines")
    split = Split.spec(inputs=[lines], par=containers, name="split")
    count = CollectBolt.spec(inputs={split: Grouping.fields("word")}, par=containers, name="count")
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 5}
    return type("Words", (Topology,), {"lines": lines, "split": split, "count": count, "config": config})


def all_counted(cluster):
    """Each of the numbers, which all spouts emit."""
    return {str(n) for n in range(ROWS)} <= {word for (word,) in cluster.record.inputs("count")}


def test_managers_and_the_master_die_while_an_update_is_under_way():
    with Cluster(words(CONTAINERS), containers=CONTAINERS, seed=1, cost=COST, check=False) as cluster:
        cluster.run_until(lambda: len(cluster.record.inputs("count")) > CONTAINERS)
        request = cluster.update_request(parallelism={"count": CONTAINERS + CONTAINERS // 2})
        cluster.update(request)
        cluster.advance(0.2)
        for number in random.Random(1).sample(sorted(cluster.plan.containers), DYING):
            cluster.kill(f"manager-{number}")
        cluster.kill("master")
        progress = cluster.updated(request)
        assert (progress.step, progress.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        assert len(cluster.plan.component_tasks["count"]) == CONTAINERS + CONTAINERS // 2
        assert all_counted(cluster)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_schedules_of_faults_among_thirty_two():
    for seed in range(SEEDS):
        with Cluster(words(32), containers=32, seed=seed, cost=COST, check=False) as cluster:
            schedule(cluster, random.Random(seed))
            cluster.run_until(lambda: cluster.over, 600)
            if cluster.state == "FAILED":
                assert "after the end was declared" in cluster.reason, seed
            else:
                assert (cluster.state, cluster.reason) == ("SUCCEEDED", ""), seed
                assert all_counted(cluster), seed
