"""A topology that waits, as its state or its component cannot be had, is mended by `ardea update`."""

from __future__ import annotations

import pytest

from ardea.errors import ProtocolError
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Count, Counted, EffectivelyOnce, states
from tests.simulation.snapshots.test_put_back import Afraid, OfText, version
from tests.simulation.snapshots.test_updates import CONFIG, all_counted
from tests.sizes import size


class Nervous(Count):
    def restored(self, snapshot_id):
        raise ValueError("what is this?")


@pytest.fixture
def cluster():
    """One that cannot begin again: a task has died."""
    with Cluster(version(Nervous), containers=2, config=CONFIG, cost={"words": 0.02}) as topology:
        topology.advance(4.0)
        topology.kill("words-0")
        topology.run_until(lambda: "cannot begin" in topology.describe() or waits(topology), 60)
        yield topology


def waits(cluster):
    coordination = Inside(cluster).master.coordination
    return coordination.snapshots.phase.name == "RESTORING" and coordination.figures.reading


def committed(cluster):
    return Inside(cluster).store.records[-1].committed


@pytest.mark.parametrize("tasks", [4, 2][: size(1, 2, whole=2)])
def test_a_new_version_begins_from_the_snapshot_before(cluster, tasks):
    before = committed(cluster)
    request = cluster.update_request(version(), parallelism={"count": tasks})
    began = cluster.time
    assert cluster.updated(request).step == "done"
    assert cluster.time < began + 10, "nobody waits for a rest that cannot be"
    records = Inside(cluster).store.records
    between = next(record for record in records if record.timeline > 1 and not record.tasks)
    assert (between.restore, between.committed) == (before, before)
    all_counted(cluster)


def test_the_same_code_with_other_tasks_reads_what_is_theirs():
    """Objects that have waited were made for the keys of the former plan."""
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        store = Inside(cluster).store
        store.unreadable = True
        cluster.kill("words-0")
        cluster.run_until(lambda: waits(cluster), 60)
        request = cluster.update_request(parallelism={"count": 3}, patience=20.0)
        cluster.update(request)
        assert cluster.update(request).step == "switching"
        with pytest.raises(ProtocolError, match="another update is under way"):
            cluster.update(cluster.update_request(version()))
        cluster.advance(5.0)
        store.unreadable = False
        assert cluster.updated(request).step == "done"
        all_counted(cluster)


@pytest.mark.parametrize("next_", [version(Afraid), version(OfText)])
def test_what_mends_nothing_is_put_back_and_the_next_may_try(cluster, next_):
    done = cluster.updated(cluster.update_request(next_, patience=5.0))
    assert done.step == "refused"
    assert "what is this?" in done.reason or "cannot be read" in done.reason
    assert cluster.state == "RUNNING"
    before = committed(cluster)
    cluster.run_until(lambda: waits(cluster), 60)
    assert cluster.updated(cluster.update_request(version())).step == "done"
    positions = states(Inside(cluster).store, before)[0]
    assert min(positions) > 0
    all_counted(cluster)


def test_a_store_without_an_answer_does_not_keep_an_update_for_ever():
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        store = Inside(cluster).store
        store.unreadable = True
        cluster.kill("words-0")
        cluster.run_until(lambda: waits(cluster), 60)
        done = cluster.updated(cluster.update_request(version(), patience=5.0))
        assert done.step == "refused"
        assert "no answer" in done.reason
        store.unreadable = False
        all_counted(cluster)


def test_a_task_that_cannot_say_what_it_has_may_not_go():
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        store = Inside(cluster).store
        store.unreadable = True
        cluster.kill("words-0")
        cluster.run_until(lambda: waits(cluster), 60)
        done = cluster.updated(cluster.update_request(parallelism={"words": 1}))
        assert done.step == "refused"
        assert done.reason == "words-1 would end, with a TaskState that no other task can take over"


@pytest.mark.parametrize("name", ["manager-2", "master", "count-1", "words-0", "manager-1"][: size(1, 5, whole=5)])
def test_whoever_dies_meanwhile(cluster, name):
    request = cluster.update_request(version())
    cluster.update(request)
    cluster.advance(0.3)
    cluster.kill(name)
    assert cluster.updated(request).step == "done"
    all_counted(cluster)


def test_a_process_that_dies_in_initialize_is_mended_when_no_rest_has_come():
    """It says nothing before it dies: the update waits as for any task that does not rest."""

    class Once(Count):
        lives = 0

        def initialize(self, config, context):
            Once.lives += 1
            if Once.lives > 2:
                raise ValueError("no such table")

    config = {**CONFIG, "topology.message.timeout.secs": 5}
    with Cluster(version(Once), containers=2, config=config, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        cluster.kill("count-0")
        cluster.advance(3.0)
        done = cluster.updated(cluster.update_request(version()))
        assert (done.step, done.reason) == ("done", "")
        all_counted(cluster)


def test_a_paused_task_that_has_not_begun_again_does_so_with_the_keys_of_the_next_plan():
    """Its object was made for those of the former one, and has had no state yet."""
    with Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        cluster.deactivate()
        cluster.advance(2.0)
        cluster.kill("count-1")
        cluster.advance(4.0)
        assert cluster.updated(cluster.update_request(parallelism={"count": 3}, patience=20.0)).step == "done"
        timeline = Inside(cluster).store.records[-1].timeline
        cluster.activate()
        all_counted(cluster)
        assert Inside(cluster).store.records[-1].timeline == timeline, "no task had to go back"


class Unborn(Count):
    """Its process dies before anything else, from its third life on."""

    lives = 0

    def __init__(self):
        Unborn.lives += 1
        if Unborn.lives > 2:
            raise ValueError("no such table")
        super().__init__()


@pytest.mark.parametrize("master", [False, True])
def test_another_version_comes_in_place_of_a_former_one_that_does_not_come_up(master):
    """Also by another master: all tasks go back to the last snapshot, whether they rest or not."""
    Unborn.lives = 0
    with Cluster(version(Unborn), containers=2, config=CONFIG, cost={"words": 0.02}) as cluster:
        cluster.advance(4.0)
        request = cluster.update_request(version(Afraid), patience=5.0)
        cluster.run_until(lambda: (progress := cluster.update(request)) and progress.step == "putting back")
        cluster.advance(20.0)
        assert cluster.update(request).late
        if master:
            cluster.kill("master")
            cluster.advance(5.0)
        done = cluster.updated(cluster.update_request(version(), patience=20.0))
        assert (done.step, done.reason) == ("done", "")
        all_counted(cluster)
