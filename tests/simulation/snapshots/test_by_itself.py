"""What a bolt does without a row: a snapshot has it, and an update keeps it."""

from __future__ import annotations

import pytest

from ardea import Bolt, Grouping, Spout, TaskState, Topology
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from tests.simulation.snapshots.counted import EffectivelyOnce

CONFIG = {"topology.stateful.checkpoint.interval.secs": 2.0, "topology.tick.tuple.freq.secs": 1.0}


class Once(Spout):
    """Emits one row, and does not say that no other comes."""

    outputs = ("word",)
    emitted = TaskState(default=False)

    def next_tuple(self):
        if not self.emitted:
            self.emit(("w",))
            self.emitted = True


class Counts(Bolt):
    n = TaskState(default=0)

    def process(self, tup):
        self.n += 1


class Acts(Counts):
    outputs = ("n",)

    def initialize(self, config, context):
        self.submit = context.submit

    def act(self):
        self.n += 1
        self.emit((self.n,))


class Ticks(Acts):
    def process_tick(self, tup):
        self.act()


def cluster(kind):
    class Counted(Topology):
        once = Once.spec()
        acts = kind.spec(inputs={once: Grouping.SHUFFLE})
        counts = Counts.spec(inputs={acts: Grouping.SHUFFLE})

    return Cluster(EffectivelyOnce(Counted), containers=2, config=CONFIG)


def tick(_):
    """Time goes on."""


def submit(acts):
    acts.submit(acts.act)


@pytest.mark.parametrize(("kind", "does"), [(Ticks, tick), (Acts, submit)], ids=["ticks", "submitted"])
def test_what_is_done_without_rows_is_kept_by_an_update(kind, does):
    with cluster(kind) as topology:
        for _ in range(20):
            topology.advance(1.0)
            does(topology.task("acts-0", kind))
        topology.advance(0.1)
        before = topology.task("acts-0", kind).n
        assert before > 15
        assert topology.updated(topology.update_request(parallelism={"counts": 2})).step == "done"
        topology.advance(0.1)
        assert topology.task("acts-0", kind).n >= before
        assert sum(topology.task(f"counts-{index}", Counts).n for index in range(2)) >= before - 1


def test_where_ticks_do_nothing_no_snapshot_is_taken():
    with cluster(Acts) as topology:
        topology.advance(20.0)
        committed = Inside(topology).store.records[-1].committed
        topology.advance(20.0)
        assert Inside(topology).store.records[-1].committed == committed
