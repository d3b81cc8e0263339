"""What is open at most: rows and bytes, for a component or for all, rows in back-off included."""

from __future__ import annotations

import pytest

from ardea import Bolt, Spout, Topology
from ardea.testing import Cluster

ROW = 10_000


class Endless(Spout):
    """A tracked row of ten thousand bytes a call."""

    outputs = ["n", "text"]

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        self.emit([self.n, "x" * ROW], tup_id=self.n)
        self.n += 1


class Holds(Bolt):
    auto_ack = False

    def process(self, tup):
        pass


class Fails(Bolt):
    def process(self, tup):
        self.fail(tup)


def emitted(cluster, task):
    """How many rows of its own the task has emitted."""
    return cluster.task(task, Endless).n


@pytest.mark.parametrize("sink", [Holds, Fails])
def test_rows_are_counted_for_each_task(sink):
    """A component's own limit wins over the topology's; rows that wait to be sent again count as open ones do."""

    class Limited(Topology):
        few = Endless.spec(par=2, config={"topology.max.spout.pending": 7})
        more = Endless.spec()
        sink = Holds.spec(inputs=[few, more])
        config = {"topology.max.spout.pending": 40, "topology.message.timeout.secs": 100}

    Limited.sink = sink.spec("sink", inputs=["few", "more"])
    with Cluster(Limited, containers=2) as cluster:
        cluster.advance(20)
        assert [emitted(cluster, task) for task in ("few-0", "few-1", "more-0")] == [7, 7, 40]


@pytest.mark.parametrize("sink", [Holds, Fails])
def test_bytes_are_counted(sink):
    """A component's limit of a megabyte: a hundred rows, whether they are open or wait to be sent again."""

    class Limited(Topology):
        spout = Endless.spec(config={"topology.max.spout.pending.bytes": 1_000_000})
        config = {"topology.message.timeout.secs": 100}

    Limited.sink = sink.spec("sink", inputs=["spout"])
    with Cluster(Limited, containers=2) as cluster:
        for _ in range(20):
            cluster.advance(1)
            assert emitted(cluster, "spout-0") <= 1_000_000 // ROW
        assert emitted(cluster, "spout-0") > 0.9 * 1_000_000 // ROW


def test_acks_make_room():
    """What was acked is not pending: all of it goes on, at no time with more than the limit open."""
    most = []

    class Counts(Endless):
        def initialize(self, config, context):
            super().initialize(config, context)
            self.acked = 0

        def next_tuple(self):
            if self.n == 500:
                self.finish()
                return
            super().next_tuple()
            most.append(self.n - self.acked)

        def ack(self, tup_id):
            self.acked += 1

    class Acks(Bolt):
        def process(self, tup):
            pass

    class Limited(Topology):
        spout = Counts.spec(config={"topology.max.spout.pending": 9})
        sink = Acks.spec(inputs=[spout])

    with Cluster(Limited) as cluster:
        cluster.run_until(lambda: cluster.over)
        assert (cluster.state, len(cluster.record.acked["spout"]), max(most)) == ("SUCCEEDED", 500, 9)


@pytest.mark.thorough
def test_untracked_rows_take_no_room_for_longer_than_they_wait():
    """A row open at most, and two untracked ones with each ack: the next row follows at once."""

    class Coordinates(Spout):
        outputs = ["n"]
        config = {"topology.max.spout.pending": 1}

        def initialize(self, config, context):
            self.n = self.acked = 0

        def next_tuple(self):
            if self.n == self.acked:
                self.n += 1
                self.emit([self.n], tup_id=self.n)

        def ack(self, tup_id):
            self.acked = tup_id
            for _ in range(2):
                self.emit([-tup_id])

    class Does(Bolt):
        def process(self, tup):
            pass

    class Coordinated(Topology):
        spout = Coordinates.spec()
        sink = Does.spec(inputs=[spout])

    with Cluster(Coordinated) as cluster:
        cluster.advance(2)
        assert cluster.task("spout-0", Coordinates).acked > 500
