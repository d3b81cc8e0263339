"""What authors do with state, in whole topologies."""

from __future__ import annotations

from ardea import Bolt, Grouping, Spout, TaskState, Topology
from ardea.testing import Cluster
from tests.simulation.snapshots.counted import EffectivelyOnce


class Words(Spout):
    outputs = ["word"]
    position = TaskState(default=0)

    def next_tuple(self):
        if not self.position:
            self.emit(["heron"])
            self.position = 1


class Dynamic(Bolt):
    def initialize(self, config, context):
        self.counts = [context.keyed_state(f"counts-{n}", default=0) for n in range(2)]

    def process(self, tup):
        for counts in self.counts:
            counts[tup["word"]] += 1


class Named(Topology):
    words = Words.spec()
    count = Dynamic.spec(par=2, inputs={words: Grouping.fields("word")})


class Shuffled(Topology):
    words = Words.spec()
    count = Dynamic.spec(par=2, inputs=[words])


def test_in_a_topology_each_object_asks_again():
    config = {"topology.stateful.checkpoint.interval.secs": 1.0}
    with Cluster(EffectivelyOnce(Named), config=config) as cluster:
        cluster.advance(3.0)
        cluster.kill("count-0")
        cluster.kill("count-1")
        cluster.advance(3.0)
        held = [cluster.task(f"count-{index}", Dynamic).counts for index in range(2)]
        assert sorted(map(dict, (*held[0], *held[1])), key=len) == [{}, {}, {"heron": 1}, {"heron": 1}]


def test_where_two_tasks_would_own_a_key_asking_fails_the_topology():
    with Cluster(EffectivelyOnce(Shuffled)) as cluster:
        cluster.run_until(lambda: cluster.over)
        assert cluster.state == "FAILED"
        assert "keyed state: [counts-0], in 2 tasks, and no input is grouped by fields" in cluster.reason
