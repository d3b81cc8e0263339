"""`ardea update` where snapshots are taken: keys move by groups, and nothing is counted twice or lost."""

from __future__ import annotations

import random
from unittest.mock import Mock

import pytest

from ardea import Bolt, Grouping, KeyedState, TaskState, Topology
from ardea.errors import UserError
from ardea.plan.shape import shape_of
from ardea.scheduler.next_definition import check_states
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import MOST, Count, Counted, EffectivelyOnce, Words, check, states
from tests.sizes import size

CONFIG = {"topology.stateful.checkpoint.interval.secs": 2.0}


class Louder(Count):
    """The next version of the counter."""


class Next(Topology):
    words = Words.spec(par=2)
    count = Louder.spec(par=2, inputs={words: Grouping.fields("word")})


@pytest.fixture
def cluster():
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as topology:
        yield topology


def committed(store):
    """The number of the last snapshot that counts."""
    return store.records[-1].committed if store.records else 0


def all_counted(cluster, within=300.0):
    store, deadline = Inside(cluster).store, cluster.time + within
    while not ((number := committed(store)) and states(store, number)[0] == [MOST, MOST]):
        assert cluster.time < deadline, cluster.describe()
        cluster.advance(2.0)
    assert check(store) == [MOST, MOST]


@pytest.mark.parametrize("tasks", [1, 3, 5])
def test_counters_become_more_or_less(cluster, tasks):
    cluster.advance(3.0)
    done = cluster.updated(cluster.update_request(parallelism={"count": tasks}))
    assert (done.step, done.reason) == ("done", "")
    store = Inside(cluster).store
    between = next(record for record in store.records if record.timeline > 1)
    assert (between.timeline, between.tasks, between.restore) == (2, {}, between.committed)
    assert {record.timeline for record in store.records} == {1, 2, 3}, "what was stored is one timeline further"
    all_counted(cluster)
    assert len([name for name in cluster.running if name.startswith("count-")]) == tasks


def test_keys_are_moved_from_the_snapshot_that_the_update_took(cluster):
    """Nothing is counted again, since nothing is emitted again."""
    cluster.advance(3.0)
    cluster.updated(cluster.update_request(parallelism={"count": 4}))
    store = Inside(cluster).store
    positions, _ = states(store, store.records[-1].restore)
    cluster.run_until(lambda: len(store.records) > 0 and store.records[-1].timeline == 3, 30)
    assert positions == states(store, store.records[-1].committed)[0]
    emitted = sum(cluster.task(f"words-{index}", Words).position for index in range(2))
    assert emitted >= sum(positions)
    all_counted(cluster)


def test_a_new_version_goes_on_from_the_state_of_the_former_one(cluster):
    cluster.advance(3.0)
    done = cluster.updated(cluster.update_request(EffectivelyOnce(Next)))
    assert (done.step, done.reason) == ("done", "")
    cluster.task("count-0", Louder)
    all_counted(cluster)


def test_spouts_with_a_position_of_their_own_cannot_become_less(cluster):
    cluster.advance(3.0)
    done = cluster.updated(cluster.update_request(parallelism={"words": 1}))
    assert done.step == "refused"
    assert done.reason == "words-1 would end, with a TaskState that no other task can take over"
    done = cluster.updated(cluster.update_request(parallelism={"count": 3}))
    assert (done.step, done.reason, "count-2" in cluster.names) == ("done", "", True)
    all_counted(cluster)


def test_while_a_store_is_full_an_update_waits_and_is_refused_in_the_end(cluster):
    cluster.advance(3.0)
    Inside(cluster).store.full = True
    done = cluster.updated(cluster.update_request(parallelism={"count": 3}))
    assert (done.step, done.reason) == ("refused", "its last snapshot is not stored after two message timeouts")
    Inside(cluster).store.full = False
    all_counted(cluster)


@pytest.mark.parametrize("seed", range(size(4, 1000, whole=15)))
def test_whoever_dies_meanwhile(seed):
    """Two updates, and six deaths, anywhere in their course."""
    dice = random.Random(seed)
    options = {"containers": dice.randint(1, 3), "seed": seed, "config": CONFIG, "cost": {"words": 0.02}}
    with Cluster(EffectivelyOnce(Counted), **options) as cluster:
        cluster.advance(dice.uniform(1.0, 4.0))
        for tasks in (dice.randint(1, 5), dice.randint(1, 5)):
            request = cluster.update_request(parallelism={"count": tasks})
            for _ in range(3):
                cluster.update(request)
                cluster.advance(dice.choice([0.05, 0.3, 1.0]) * dice.random())
                cluster.kill(dice.choice([name for name in cluster.running if name != "report"]))
            cluster.updated(request)
        all_counted(cluster)


class Loud(Words):
    """``emitted`` of both, in all their lives: what comes twice counts twice."""

    emitted = 0

    def emit(self, values, **options):
        Loud.emitted += 1
        return super().emit(values, **options)


class Evicted(Topology):
    words = Loud.spec(par=2)
    count = Count.spec(par=2, inputs={words: Grouping.fields("word")})


@pytest.mark.parametrize("after", [1.0, 2.7, 3.5])
def test_when_a_pod_leaves_nothing_is_emitted_again(after):
    Loud.emitted = 0
    with Cluster(EffectivelyOnce(Evicted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(after)
        cluster.evict(2)
        all_counted(cluster)
        assert Inside(cluster).store.records[-1].timeline > 1
    assert Loud.emitted == 2 * MOST


def test_a_pod_leaves_although_the_store_is_full():
    with Cluster(EffectivelyOnce(Evicted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(2.0)
        store = Inside(cluster).store
        store.full = True
        life = cluster.life("manager-2")
        cluster.evict(2)
        cluster.run_until(lambda: cluster.life("manager-2") > life, 60)
        store.full = False
        all_counted(cluster)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"config": {"topology.key.groups": 12}}, "topology.key.groups is 720 and would be 12, which cannot change"),
        ({"topology": Counted}, "topology.reliability.mode is EFFECTIVELY_ONCE and would be ATLEAST_ONCE"),
        ({"parallelism": {"count": 721}}, "has 721 tasks, and topology.key.groups is 720: some would own no key"),
    ],
)
def test_what_the_state_relies_on_cannot_change(cluster, change, says):
    with pytest.raises(UserError, match=says) as caught:
        cluster.update_request(**change)
    assert "nothing was changed" in caught.value.message


class Renamed(Bolt):
    numbers = KeyedState(default=0)


class OfTask(Bolt):
    counts = TaskState(default=0)


@pytest.mark.parametrize(
    ("bolt", "says"),
    [
        (Renamed, "count.counts: the topology would not declare that state any more"),
        (OfTask, "count.counts is a KeyedState and would be a TaskState: what is stored cannot be read so"),
    ],
)
def test_state_is_not_lost_by_a_new_version_that_does_not_know_it(bolt, says):
    """But if that is said."""
    with_process = type(bolt.__name__, (bolt,), {"process": Count.process})

    class Next(Topology):
        words = Words.spec(par=2)
        count = with_process.spec(par=2, inputs={words: Grouping.fields("word")})

    present, plan = (EffectivelyOnce(each).plan() for each in (Counted, Next))
    definition = Mock(shape=shape_of(present))
    with pytest.raises(UserError, match=says):
        check_states(definition, plan, drop_state=False)
    if bolt is Renamed:
        check_states(definition, plan, drop_state=True)
    check_states(definition, present, drop_state=False)


def test_keyed_state_does_not_get_a_second_task_that_nobody_sends_its_keys():
    class Shuffled(Topology):
        words = Words.spec(par=2)
        count = Count.spec(par=1, inputs=[words])

    says = "no input is grouped by fields: nothing says whose a key is"
    with Cluster(EffectivelyOnce(Shuffled), config=CONFIG) as cluster, pytest.raises(UserError, match=says):
        cluster.update_request(parallelism={"count": 2})
