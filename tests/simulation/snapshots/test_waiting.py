"""Tasks that wait for their state hear of plans and orders, whatever their output holds."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, KeyedState, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import Count, EffectivelyOnce, Endless

CONFIG = {
    "topology.stateful.checkpoint.interval.secs": 2.0,
    "topology.stateful.queue.millis": 20,
    "topology.stateful.max.rollbacks.per.row": 100,
}


class Needs:
    """A database: one can connect to it if it is ``there``, and it ``answers``."""

    there = answers = True

    def initialize(self, config, context):
        if not Needs.there:
            raise ConnectionError("the database is away")


class Fan(Needs, Bolt):
    outputs = ("word",)

    def process(self, tup):
        for _ in range(1 if Needs.answers else 2000):  # more than its reader has room for, as soon as that matters
            self.emit((tup["word"],))


class Stores(Needs, Bolt):
    counts = KeyedState(default=0)

    def process(self, tup):
        if not Needs.answers:
            raise ConnectionError("the database does not answer")
        self.counts[tup["word"]] += 1


class Fanned(Topology):
    words = Endless.spec(par=1)
    fan = Fan.spec(par=1, inputs=[words])
    stores = Stores.spec(par=1, inputs={fan: Grouping.fields("word")})
    other = Count.spec(par=1, inputs={words: Grouping.fields("word")})


def stands(cluster):
    """Whether rows wait for a reader whose timeline has ended, and so does their sender."""
    fan, reader = (Inside(cluster).executor(name) for name in ("fan-0", "stores-0"))
    return fan.runner.waits_for_room and not reader.env.snapshots.timeline.works


@pytest.fixture(autouse=True)
def _there():
    yield
    Needs.there = Needs.answers = True


@pytest.mark.parametrize("seed", range(3))
def test_a_task_whose_reader_has_no_state_and_no_room_works_by_the_plan_that_comes(seed):
    with Cluster(EffectivelyOnce(Fanned), containers=2, config=CONFIG, cost={"words": 0.02}, seed=seed) as cluster:
        cluster.advance(5.0)
        Needs.answers = False  # each rollback waits longer than the one before
        cluster.run_until(lambda: stands(cluster), 30)
        Needs.there, Needs.answers = False, True
        cluster.advance(5.0)
        done = cluster.updated(cluster.update_request(parallelism={"other": 2}, patience=20.0))
        assert done.step == "refused"
        Needs.there = True
        store = Inside(cluster).store
        before = store.records[-1].committed
        cluster.run_until(lambda: store.records[-1].committed > before, 120)
        assert cluster.updated(cluster.update_request(parallelism={"other": 2})).step == "done"
