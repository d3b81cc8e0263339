"""A container that is ended in peace is emptied first: nothing is lost, and nothing is sent again."""

from __future__ import annotations

from collections import deque

import pytest

from ardea import Bolt, Grouping, Spout, Topology
from ardea.testing import Cluster, CollectBolt, RowsSpout
from ardea.testing.inside import Inside

ROWS = 300
MODES = {"tracked": {}, "at most once": {"topology.reliability.mode": "ATMOST_ONCE"}}


class Taking(Spout):
    """Takes rows out of a queue that gives each of them once: one that it has not got rid of would be gone with it."""

    outputs = ["line"]
    queue = deque()

    def next_tuple(self):
        if self.queue:
            n = self.queue.popleft()
            self.emit([f"{n} a{n}"], tup_id=n)
        else:
            self.finish()


class Split(Bolt):
    outputs = ["word"]

    def process(self, tup):
        for word in tup[0].split():
            self.emit([word])


class Words(Topology):
    lines = Taking.spec(par=2)
    split = Split.spec(inputs=[lines], par=3)
    count = CollectBolt.spec(inputs={split: Grouping.fields("word")}, par=3)
    config = {"topology.message.timeout.secs": 30, "topology.max.spout.pending": 20}


SOON = 18.0
"""Seconds: whoever is asked for a departure would answer after 20 at the latest."""
WORDS = sorted(word for n in range(ROWS) for word in (f"{n}", f"a{n}"))
COST = {"lines": 0.02, "split": 0.01, "count": 0.01}


def words(cluster):
    return sorted(word for (word,) in cluster.record.inputs("count"))


@pytest.mark.sampled(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("container", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_lost_and_nothing_comes_again(mode, container, seed):
    Taking.queue = deque(range(ROWS))
    with Cluster(Words, containers=3, seed=seed, cost=COST, config=MODES[mode]) as cluster:
        cluster.at(1.0 + seed / 7, lambda c: c.evict(container))
        cluster.run_until(lambda: cluster.over, 300)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        assert words(cluster) == WORDS
        assert cluster.record.failed.get("lines", []) == []
        assert cluster.life(f"manager-{container}") == 2


def run_with(*faults, seconds=300, cost=COST, **options):
    """What Kubernetes or a fault does, and when; a cluster that has ended."""
    Taking.queue = deque(range(ROWS))
    cluster = Cluster(Words, containers=3, cost=cost, faults=faults, **options)
    cluster.run_until(lambda: cluster.over, seconds)
    assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
    return cluster


@pytest.mark.parametrize("mode", MODES)
def test_a_whole_node_may_be_drained(mode):
    both = [(1.0, lambda c: c.evict(1)), (1.1, lambda c: c.evict(3))]
    with run_with(*both, config=MODES[mode]) as cluster:
        assert words(cluster) == WORDS


@pytest.mark.parametrize("mode", MODES)
def test_one_after_the_other(mode):
    """The second asks while the first is away."""
    both = [(1.0, lambda c: c.evict(1)), (1.6, lambda c: c.evict(2)), (8.0, lambda c: c.evict(1))]
    with run_with(*both, config=MODES[mode]) as cluster:
        assert words(cluster) == WORDS
        assert cluster.life("manager-1") == 3


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", [0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 8.0])
def test_a_master_that_dies_meanwhile_holds_nobody_for_ever(after, mode):
    """The next one is asked again, and takes those for away that it has not heard: nothing is lost or comes again."""
    faults = (1.0, lambda c: c.evict(2)), (1.0 + after, lambda c: c.kill("master"))
    with run_with(*faults, config=MODES[mode]) as cluster:
        assert words(cluster) == WORDS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("after", [0.12, 1.0, 1.5, 2.0])
def test_a_node_that_has_the_master_may_be_drained(after, mode):
    """The next master takes all of its pods for away."""
    both = [(1.0, lambda c: c.evict(1)), (1.1, lambda c: c.evict(3))]
    with run_with(*both, (1.0 + after, lambda c: c.kill("master")), config=MODES[mode]) as cluster:
        assert words(cluster) == WORDS


@pytest.mark.sampled(5)
@pytest.mark.parametrize("victim", ["container-2", "manager-2", "split-2", "container-1"])
@pytest.mark.parametrize("after", [0.02, 0.1, 0.4, 2.0])
def test_whatever_dies_meanwhile(victim, after):
    """Whoever is lost in between costs what it costs without: nobody is waited for who is back already."""
    run_with((1.0, lambda c: c.evict(2)), (1.0 + after, lambda c: c.kill(victim)), seconds=SOON).close()


def test_nobody_waits_longer_than_the_grace_for_a_bolt_that_does_not_rest():
    """It is ended as if nobody had asked, and what was lost comes again."""
    with run_with((1.0, lambda c: c.evict(3)), cost={**COST, "split": 2.0}, seconds=3000) as cluster:
        assert set(words(cluster)) == set(WORDS)


@pytest.mark.parametrize("first", ["evict", "update"])
def test_an_update_goes_first(first):
    """Whoever is about to leave is lost to it at once, as if its node had died."""
    Taking.queue = deque(range(ROWS))
    with Cluster(Words, containers=3, cost=COST) as cluster:
        cluster.advance(1.0)
        if first == "evict":
            cluster.evict(3)
            cluster.advance(0.01)
        request = cluster.update_request(parallelism={"split": 4})
        assert cluster.update(request).running
        if first == "update":
            cluster.evict(3)
        assert cluster.updated(request).step == "done"
        assert cluster.life("manager-3") == 2
        cluster.run_until(lambda: cluster.over, SOON)
        assert set(words(cluster)) == set(WORDS)


class Three(Topology):
    """Each task has a container of its own."""

    count = CollectBolt.spec(inputs=["lines"], par=2)
    lines = RowsSpout.of(["n"], [[n] for n in range(1000)]).spec()
    config = {"heron.class.packing.algorithm": "FirstFitDecreasing", "topology.container.max.instances": 1}


@pytest.mark.parametrize("mode", [*MODES, "effectively once"])
def test_a_container_that_an_update_has_removed_leaves_at_once(mode):
    """Its pod ends a while after the update: nothing of the plan leaves, and no spout is held."""
    config = MODES.get(mode, {"topology.reliability.mode": "EFFECTIVELY_ONCE"})
    with Cluster(Three, cost={"lines": 0.01}, config=config) as cluster:
        cluster.advance(3.0)
        inside = Inside(cluster)
        inside.store.switched = lambda: None  # the scheduler is slow
        assert cluster.updated(cluster.update_request(parallelism={"count": 1})).step == "done"
        assert list(inside.master.admissions.plan.containers) == [1, 3]
        cluster.evict(2)
        cluster.run_until(lambda: cluster.life("manager-2") == 2, 3.0)
        ordered = [what for _, what, _ in inside.master.stories.events(cluster.time)["topology"]]
        assert ordered[-2:] == ["ordered RESUME", "ordered LEAVE"]


@pytest.mark.parametrize("first", ["evict", "kill"])
def test_who_is_ended_while_the_topology_drains_ends_with_it(first):
    Taking.queue = deque(range(ROWS))
    with Cluster(Words, containers=3, cost=COST) as cluster:
        cluster.advance(1.0)
        acts = {"evict": lambda: cluster.evict(2), "kill": lambda: cluster.drain(60.0)}
        acts.pop(first)()
        cluster.advance(0.01)
        (then,) = acts.values()
        then()
        cluster.run_until(lambda: cluster.over, 5)
        assert (cluster.state, cluster.reason) == ("KILLED", "")


@pytest.fixture(scope="module")
def declared():
    """When the end is declared of a topology that nobody disturbs, in simulated seconds."""
    Taking.queue = deque(range(ROWS))
    with Cluster(Words, containers=3, cost=COST) as cluster:
        cluster.run_until(lambda: cluster.state == "ENDING", 300)
        return cluster.time


@pytest.mark.sampled(8)
@pytest.mark.parametrize("before", [0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001, -0.00005, -0.0001, -0.0002, -0.0004])
@pytest.mark.parametrize("container", [1, 2, 3])
def test_the_end_and_a_departure_at_the_same_moment(declared, container, before):
    """Either the end waits until the container is back, or the container until the topology has ended."""
    with run_with((declared - before, lambda c: c.evict(container))) as cluster:
        assert words(cluster) == WORDS
