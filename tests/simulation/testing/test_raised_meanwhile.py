"""What is raised while an executor waits inside an emit: it is not the author's to catch."""

from __future__ import annotations

import pytest

from ardea import Bolt, Topology
from ardea.testing import Cluster, CollectBolt, InvariantError, RowsSpout, run


class Many(Bolt):
    """Emits more in one call than its output may hold."""

    outputs = ["n"]
    closed = 0

    def process(self, tup):
        for n in range(6_000):
            self.emit([n])

    def close(self):
        Many.closed += 1


class Catching(Many):
    def process(self, tup):
        try:
            super().process(tup)
        except BaseException:
            return


class Waiting(Topology):
    rows = RowsSpout.of(["n"], [[1]], tracked=True).spec()
    many = Many.spec(inputs=[rows])
    reader = CollectBolt.spec(inputs=[many])
    config = {"topology.max.held.bytes": 2000, "heron.instance.internal.queue.bytes": 2000}


class CaughtInWaiting(Waiting):
    rows = RowsSpout.of(["n"], [[1]], tracked=True).spec()
    many = Catching.spec(inputs=[rows])
    reader = CollectBolt.spec(inputs=[many])


def fails(error):
    def action(cluster):
        raise error

    return [(0.5, action)]


@pytest.mark.parametrize("topology", [Waiting, CaughtInWaiting])
@pytest.mark.parametrize("error", [AssertionError("as a test does"), InvariantError("as the engine does"), SystemExit])
def test_it_leaves_run(topology, error):
    with pytest.raises(error if isinstance(error, type) else type(error)) as raised:
        run(topology, cost={"reader": 0.01}, faults=fails(error), until=5)
    assert raised.value is error or error is SystemExit


@pytest.mark.parametrize("topology", [Waiting, CaughtInWaiting])
def test_others_go_on_after_it_and_all_are_closed(topology, monkeypatch):
    monkeypatch.setattr(Many, "closed", 0)
    with Cluster(topology, cost={"reader": 0.01}, faults=fails(LookupError)) as cluster:
        with pytest.raises(LookupError):
            cluster.advance(1)
        read = len(cluster.record.received["reader"])
        cluster.advance(1)
        assert len(cluster.record.received["reader"]) > read
    assert Many.closed == 1
