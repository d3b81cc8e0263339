"""A running topology changes with tuples in flight: what the spouts emitted is processed, whatever dies meanwhile.

A seed that fails, fails again: ``pytest -k "test_schedule and 137"``.
"""

from __future__ import annotations

import logging
import random
from collections import Counter

import pytest

from ardea import Bolt, Grouping, Spout, Topology
from ardea.errors import ProtocolError
from ardea.testing import Cluster, CollectBolt, RowsSpout
from tests.simulation.test_faults import schedule

ROWS = 400
SEEDS = 20


@pytest.fixture(autouse=True)
def quiet():
    """Nothing here is worth a line on standard error."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Numbers(Spout):
    """Counts; where each task is, a file would keep: a class attribute does, for all of its lives."""

    outputs = ["n"]
    acked: dict[int, set[int]] = {}

    def initialize(self, config, context):
        self.me, self.updates = context.this_task_id, []
        done = self.acked.setdefault(self.me, set())
        self.left = [n for n in range(ROWS) if n not in done]

    def next_tuple(self):
        if not self.left:
            self.finish()
            return
        n = self.left.pop(0)
        self.emit([f"{self.me}:{n}"], tup_id=n)

    def ack(self, tup_id):
        self.acked[self.me].add(tup_id)

    def update(self, context):
        self.updates.append(context.component_tasks("double"))


class Double(Bolt):
    outputs = ["n"]
    updated = Counter()

    def process(self, tup):
        self.emit([tup[0]])

    def update(self, context):
        self.updated[context.this_task_id] += 1


class Sink(CollectBolt):
    pass


class Words(Topology):
    numbers = Numbers.spec(par=2)
    double = Double.spec(inputs=[numbers], par=2)
    sink = Sink.spec(inputs={double: Grouping.fields("n")})
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 50}


class Other(Topology):
    """A branch of its own beside it."""

    numbers = Numbers.spec(par=2)
    double = Double.spec(inputs=[numbers], par=2)
    sink = Sink.spec(inputs={double: Grouping.fields("n")})
    apart = RowsSpout.of(["row"], [[n] for n in range(3000)]).spec()
    end = CollectBolt.spec(inputs=[apart])
    config = {"topology.message.timeout.secs": 10, "topology.max.spout.pending": 50}


SLOW = {"numbers": 1e-3, "double": 4e-3, "sink": 1e-3}


@pytest.fixture
def cluster(request):
    Numbers.acked = {}
    Double.updated = Counter()
    topology = getattr(request, "param", Words)
    cost = {**SLOW, "apart": 1e-3} if topology is Other else SLOW
    with Cluster(topology, containers=2, seed=7, cost=cost) as made:
        made.run_until(lambda: len(made.record.received["sink"]) > 50)
        yield made


def all_arrived(cluster, spouts=(3, 4)):
    got = {row for (row,) in cluster.record.inputs("sink")}
    return {f"{task}:{n}" for task in spouts for n in range(ROWS)} <= got


def finish(cluster):
    cluster.run_until(lambda: cluster.over, 300)
    assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")


def test_scale_up(cluster):
    """New tasks work, ids go on above the highest, everybody concerned hears of it, nothing is sent twice."""
    assert cluster.plan.component_tasks == {"double": (1, 2), "numbers": (3, 4), "sink": (5,)}
    spout = cluster.task("numbers-0", Numbers)
    progress = cluster.updated(cluster.update_request(parallelism={"double": 4}))
    assert (progress.step, progress.reason) == ("done", "")
    assert cluster.plan.component_tasks["double"] == (1, 2, 6, 7)
    assert cluster.task("numbers-0", Numbers) is spout  # it went on in place
    assert spout.updates == [(1, 2, 6, 7)]
    assert Double.updated == {1: 1, 2: 1}
    finish(cluster)
    assert all_arrived(cluster)
    assert {row.task for row in cluster.record.received["double"]} == {1, 2, 6, 7}
    assert not cluster.record.lost["numbers"]
    assert len(cluster.record.inputs("sink")) == 2 * ROWS


def test_scale_down_and_up_again(cluster):
    """The highest index goes; its id does not come again."""
    assert cluster.updated(cluster.update_request(parallelism={"double": 1})).step == "done"
    cluster.run_until(lambda: cluster.plan.epoch == 2, 1)
    assert cluster.plan.component_tasks["double"] == (1,)
    assert "double-1" not in cluster.running
    assert cluster.updated(cluster.update_request(parallelism={"double": 2})).step == "done"
    assert cluster.plan.component_tasks["double"] == (1, 6)
    finish(cluster)
    assert all_arrived(cluster)
    assert len(cluster.record.inputs("sink")) == 2 * ROWS


def test_a_spout_that_goes_is_empty(cluster):
    """What it emitted is processed before it goes."""
    progress = cluster.updated(cluster.update_request(parallelism={"numbers": 1}))
    assert progress.step == "done"
    emitted = [row for row in cluster.record.emitted["numbers"] if row.task == 4]
    assert 0 < len(emitted) < ROWS
    finish(cluster)
    assert {row.values for row in emitted} <= set(cluster.record.inputs("sink"))
    assert all_arrived(cluster, [3])


def test_a_new_version(cluster):
    """Every instance is started again, from what its spouts have acked."""

    class Loud(Double):
        def process(self, tup):
            self.emit([tup[0]])

    class Words2(Topology):
        numbers = Numbers.spec(par=2)
        double = Loud.spec(inputs=[numbers], par=3)
        sink = Sink.spec(inputs={double: Grouping.fields("n")})
        config = Words.config

    progress = cluster.updated(cluster.update_request(Words2))
    assert (progress.step, progress.reason) == ("done", "")
    assert cluster.task("double-2", Loud)
    finish(cluster)
    assert all_arrived(cluster)


def test_configuration(cluster):
    assert cluster.updated(cluster.update_request(config={"topology.max.spout.pending": 7})).step == "done"
    assert cluster.plan.logical.config["topology.max.spout.pending"] == 7
    finish(cluster)
    assert all_arrived(cluster)


@pytest.mark.thorough
@pytest.mark.parametrize("cluster", [Other], indirect=True)
def test_the_others_flow(cluster):
    """A spout from which nothing reaches the difference is not held."""
    before = len(cluster.record.received["end"])
    cluster.update(cluster.update_request(parallelism={"double": 4}))
    cluster.advance(0.01)
    held = len(cluster.record.emitted["numbers"])
    cluster.advance(0.05)
    assert len(cluster.record.emitted["numbers"]) == held
    assert len(cluster.record.received["end"]) > before
    request = cluster.update_request(parallelism={"double": 4})
    cluster.run_until(lambda: cluster.update(request).step == "done", 30)
    finish(cluster)


def test_a_repeated_request_changes_nothing(cluster):
    request = cluster.update_request(parallelism={"double": 3})
    assert cluster.updated(request).step == "done"
    assert cluster.updated(request).step == "done"
    assert cluster.updated(cluster.update_request(parallelism={"double": 3})).step == "done"
    assert cluster.plan.epoch == 2


def test_another_update_waits(cluster):
    cluster.update(cluster.update_request(parallelism={"double": 3}))
    with pytest.raises(ProtocolError, match="another update is under way"):
        cluster.update(cluster.update_request(parallelism={"double": 4}))


def test_a_stale_request_is_refused(cluster):
    stale = cluster.update_request(parallelism={"double": 4})
    assert cluster.updated(cluster.update_request(parallelism={"double": 3})).step == "done"
    with pytest.raises(ProtocolError, match="was made for plan 1, and plan 2 is in force"):
        cluster.update(stale.__class__("another", stale.wanted, stale.base, 60.0))


def test_who_stands_still_at_the_switch_works_by_the_plan_when_it_goes_on():
    """Its manager has not heard it for some seconds, and sends it the plan all the same."""
    Numbers.acked = {}
    with Cluster(Other, containers=1, seed=7, cost=dict.fromkeys(("numbers", "double", "sink"), 0.05)) as cluster:
        cluster.run_until(lambda: cluster.record.received["end"])
        request = cluster.update_request(parallelism={"double": 3}, patience=12.0)
        cluster.freeze("end-0", 8.0)
        cluster.advance(5.0)
        progress = cluster.updated(request)
        assert (progress.step, progress.reason) == ("done", "")
        assert cluster.life("end-0") == 1
        finish(cluster)
        assert all_arrived(cluster, cluster.plan.component_tasks["numbers"])


class Hangs(Double):
    """Never initialises."""

    def initialize(self, config, context):
        raise RuntimeError("broken")


class Broken(Topology):
    numbers = Numbers.spec(par=2)
    double = Hangs.spec(inputs=[numbers], par=2)
    sink = Sink.spec(inputs={double: Grouping.fields("n")})
    config = Words.config


def test_a_version_that_does_not_come_up_is_put_back(cluster):
    """The former version goes on where it was."""
    progress = cluster.updated(cluster.update_request(Broken, patience=20.0))
    assert progress.step == "refused"
    assert "double-0 does not work by it yet" in progress.reason
    assert cluster.plan.epoch == 3
    finish(cluster)
    assert all_arrived(cluster)


class Once(Double):
    """Does not begin in its second life, nor in later ones: what it needs is gone."""

    lives = 0

    def initialize(self, config, context):
        Once.lives += 1
        if Once.lives > 2:
            raise ValueError("no such table")


class Spoilt(Topology):
    numbers = Numbers.spec(par=2)
    double = Once.spec(inputs=[numbers], par=2)
    sink = Sink.spec(inputs={double: Grouping.fields("n")})
    config = Words.config


@pytest.fixture
def spoilt():
    """An update of it is put back, and the former version does not come up."""
    Numbers.acked, Once.lives = {}, 0
    with Cluster(Spoilt, containers=2, seed=7, cost=SLOW) as cluster:
        cluster.run_until(lambda: len(cluster.record.received["sink"]) > 50)
        put_back(cluster)
        yield cluster


def put_back(cluster):
    request = cluster.update_request(Broken, patience=5.0)
    cluster.run_until(lambda: (progress := cluster.update(request)) and progress.step == "putting back")
    cluster.advance(20)
    assert cluster.update(request).late


@pytest.mark.parametrize("died", [(), ("manager-1", "numbers-0")])
def test_another_version_comes_in_place_of_a_former_one_that_does_not(spoilt, died):
    """Spouts have been held since the first one; a second that does not come up either changes nothing."""
    for name in died:
        spoilt.kill(name)
    put_back(spoilt)
    progress = spoilt.updated(spoilt.update_request(Words, patience=20.0))
    assert (progress.step, progress.reason) == ("done", "")
    finish(spoilt)
    assert all_arrived(spoilt)


class Further(Spout):
    outputs, taken = ["n"], []

    def next_tuple(self):
        Further.taken.append(1)
        self.emit([1], tup_id=len(Further.taken))


class BrokenFurther(Topology):
    numbers = Numbers.spec(par=2)
    further = Further.spec()
    double = Hangs.spec(inputs=[numbers, further], par=2)
    sink = Sink.spec(inputs={double: Grouping.fields("n")})
    config = Words.config


def test_a_spout_that_such_a_version_brings_waits_until_all_work_by_it(spoilt):
    request = spoilt.update_request(BrokenFurther, patience=5.0)
    spoilt.run_until(lambda: (progress := spoilt.update(request)) and progress.step == "switching")
    spoilt.run_until(lambda: (progress := spoilt.update(request)) and progress.step == "putting back")
    assert Further.taken == []


def test_a_new_master_does_not_know_what_rests(spoilt):
    spoilt.kill("master")
    spoilt.advance(5)
    with pytest.raises(ProtocolError, match="an update is being put back, and not all rests that this one changes"):
        spoilt.update(spoilt.update_request(Words))


class Sulks(Bolt):
    """Acks nothing."""

    auto_ack = False

    def process(self, tup):
        pass


class Stuck(Topology):
    numbers = Numbers.spec(par=2)
    double = Sulks.spec(inputs=[numbers], par=2)
    config = Words.config


@pytest.mark.parametrize("timeouts", [True, False])
def test_rest_is_lost_and_sent_again(timeouts):
    """Trees that nobody completes: after a message timeout they are lost, the update goes on, they are sent again."""
    Numbers.acked = {}
    config = {"topology.enable.message.timeouts": timeouts}
    with Cluster(Stuck, containers=2, seed=3, cost={"numbers": 1e-3}, config=config) as cluster:
        cluster.run_until(lambda: len(cluster.record.received["double"]) >= 100)
        progress = cluster.updated(cluster.update_request(parallelism={"double": 3}))
        assert progress.step == "done"
        assert len(cluster.record.lost["numbers"]) >= 100 or timeouts
        cluster.run_until(lambda: len(cluster.record.received["double"]) >= 200)


def test_a_spout_that_never_gets_empty_stays():
    """Refused after two message timeouts, naming it; the topology goes on."""
    Numbers.acked = {}
    with Cluster(Stuck, containers=2, seed=3, cost={"numbers": 1e-3}) as cluster:
        cluster.run_until(lambda: len(cluster.record.received["double"]) >= 100)
        began = cluster.time
        progress = cluster.updated(cluster.update_request(parallelism={"numbers": 1}))
        assert progress.step == "refused"
        assert "numbers-1 has 50" in progress.reason
        assert 20 <= cluster.time - began < 21
        assert cluster.plan.epoch == 1
        before = len(cluster.record.received["double"])
        cluster.run_until(lambda: len(cluster.record.received["double"]) > before + 100)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("later", [0.0, 0.02, 0.1, 0.3, 0.6, 1.0])
def test_a_new_master(cluster, later):
    """It lets the spouts go on, or finishes the switch; the verb, which asks again, finishes the update."""
    request = cluster.update_request(parallelism={"double": 4})
    cluster.update(request)
    cluster.advance(later)
    cluster.kill("master")
    assert cluster.updated(request).step == "done"
    assert cluster.plan.component_tasks["double"] == (1, 2, 6, 7)
    finish(cluster)
    assert all_arrived(cluster)


def test_without_the_verb_a_new_master_lets_the_spouts_go_on(cluster):
    """Whoever asked is gone too."""
    cluster.update(cluster.update_request(parallelism={"double": 4}))
    cluster.advance(0.005)
    cluster.kill("master")
    finish(cluster)
    assert cluster.plan.epoch == 1
    assert all_arrived(cluster)


@pytest.mark.parametrize("victims", [(), ("numbers-0",), ("double-1", "sink-0"), ("manager-1", "double-0", "sink-0")])
def test_a_paused_topology_is_updated_again_and_again(cluster, victims):
    """Tasks that have not been initialised since it was paused rest, too."""
    cluster.deactivate()
    cluster.advance(2)
    for name in victims:
        cluster.kill(name)
    cluster.advance(5)
    for tasks, pending in ((3, 40), (3, 41), (2, 41), (4, 42)):
        began = cluster.time
        request = cluster.update_request(parallelism={"double": tasks}, config={"topology.max.spout.pending": pending})
        progress = cluster.updated(request)
        assert (progress.step, progress.reason, cluster.state) == ("done", "", "PAUSED")
        assert cluster.time < began + 5, "a message timeout is longer"
        cluster.advance(1)
    cluster.activate()
    finish(cluster)
    assert all_arrived(cluster)


def test_a_topology_that_was_never_active_is_updated():
    Numbers.acked = {}
    with Cluster(Words, containers=2, seed=7, cost=SLOW, active=False) as cluster:
        cluster.advance(3)
        for tasks in (3, 4):
            assert cluster.updated(cluster.update_request(parallelism={"double": tasks})).step == "done"
        cluster.activate()
        finish(cluster)
        assert all_arrived(cluster)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_schedule(seed):
    """Updates under faults: no tracked tuple is lost, and it ends."""
    Numbers.acked = {}
    dice = random.Random(f"updates of {seed}")
    with Cluster(Words, containers=dice.randint(1, 3), seed=seed, cost=SLOW) as cluster:
        schedule(cluster, dice)
        cluster.advance(dice.uniform(0.05, 0.5))
        for _ in range(dice.randint(1, 3)):
            if cluster.state != "RUNNING":
                break
            request = dice.choice(
                [
                    lambda: cluster.update_request(parallelism={"double": dice.randint(1, 4)}),
                    lambda: cluster.update_request(parallelism={"sink": dice.randint(1, 3)}),
                    lambda: cluster.update_request(config={"topology.max.spout.pending": dice.randint(10, 90)}),
                    lambda: cluster.update_request(Words, parallelism={"double": dice.randint(1, 4)}),
                ]
            )()
            try:
                progress = cluster.updated(request)
            except ProtocolError as refused:
                if refused.code in ("UPDATE_STALE", "UPDATE_REFUSED"):
                    continue
                raise
            known = ("after two message timeouts", "the topology is SUCCEEDED", "the topology has ended")
            assert progress.step == "done" or any(why in progress.reason for why in known), progress
        cluster.run_until(lambda: cluster.over, 300)
        if cluster.state == "FAILED":
            assert "after the end was declared" in cluster.reason
        else:
            assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
            assert all_arrived(cluster, cluster.plan.component_tasks["numbers"])


class Shared(Spout):
    """Task 0 has nothing to read before an update, as a bounded source whose partitions are other tasks'."""

    outputs = ["n"]

    def initialize(self, config, context):
        self.left = list(range(40)) if context.this_task_index else []
        self.first = context.this_task_index == 0

    def next_tuple(self):
        if self.left:
            self.emit([self.left.pop()], tup_id=len(self.left))
        else:
            self.finish()

    def update(self, context):
        if self.first:
            self.left = list(range(1000, 1010))
            self._collector.reopen()


def test_a_source_that_has_finished_goes_on_with_what_an_update_brings_it():
    class Sources(Topology):
        numbers = Shared.spec(par=2)
        sink = Sink.spec(inputs=[numbers])

    with Cluster(Sources, containers=2, cost={"numbers": 0.1}) as cluster:
        cluster.advance(1.0)
        done = cluster.updated(cluster.update_request(parallelism={"sink": 2}))
        assert done.step == "done"
        cluster.run_until(lambda: cluster.over, 120)
        assert cluster.state == "SUCCEEDED"
        assert sorted(row for (row,) in cluster.record.inputs("sink")) == [*range(40), *range(1000, 1010)]
