"""Order: what one task emits to another arrives in the order of emission, across streams."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ardea import Bolt, Spout, Stream, Topology
from ardea.heron_instance.dispatch import Dispatch
from ardea.testing import CollectBolt, run
from tests.sizes import share

STREAMS = ("odd", "even", "default")


class Alternating(Spout):
    """Emits 0, 1, 2 ... each on a stream that its number chooses, ``burst`` of them in one call."""

    outputs = [Stream(["n"], name=name) for name in STREAMS]
    total = burst = period = 1

    def initialize(self, config, context):
        self.n = 0

    def next_tuple(self):
        for _ in range(self.burst):
            if self.n == self.total:
                self.finish()
                return
            self.emit([self.n], tup_id=self.n, stream=STREAMS[self.n // self.period % 3])
            self.n += 1


class Pass(Bolt):
    outputs = Alternating.outputs

    def process(self, tup):
        self.emit(list(tup.values), stream=tup.stream)


def topology(total, burst, period, rows=1000):
    spout = type("Alternating", (Alternating,), {"total": total, "burst": burst, "period": period}).spec("spout")
    middle = Pass.spec("middle", inputs=[spout[name] for name in STREAMS])
    sink = CollectBolt.spec("sink", inputs=[middle[name] for name in STREAMS])
    config = {"topology.executor.batch.rows": rows, "topology.max.spout.pending": 1_000_000}
    return type("Order", (Topology,), {"a": spout, "b": middle, "c": sink, "config": config})


def arrived(result, component):
    return [row.values[0] for row in result.received[component]]


@pytest.mark.sampled(4)
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("burst", "containers"), [(1, 1), (1, 2), (10, 2), (100, 1), (100, 2), (1000, 1), (1000, 2), (10_000, 2)]
)
def test_alternating_streams(burst, containers):
    """Any size of flush, one container or two."""
    total = max(burst, 300)
    result = run(topology(total, burst, 1 if burst < 10_000 else 9), containers=containers, seed=burst)
    assert (result.state, arrived(result, "sink")) == ("SUCCEEDED", list(range(total)))


@pytest.mark.thorough
@pytest.mark.parametrize("period", [10_000, 7, 2_500])
def test_ten_thousand_rows_in_one_flush(period, monkeypatch):
    """As many as the largest batch may have here; by default a call is cut at 4,000 of a stream."""
    flushed, flush = [], Dispatch.flush

    def noted(dispatch, origins, part=None):
        flushed.append((dispatch.task_output.component, dispatch.task_output.waiting))
        flush(dispatch, origins, part)

    monkeypatch.setattr(Dispatch, "flush", noted)
    result = run(topology(30_000, 10_000, period, rows=10_000), containers=2, seed=period)
    assert (result.state, arrived(result, "sink")) == ("SUCCEEDED", list(range(30_000)))
    assert [rows for component, rows in flushed if component == "spout" and rows] == [10_000] * 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("burst", "period"), [(1, 1), (100, 2), (5000, 40)])
@pytest.mark.parametrize("seed", range(3))
def test_a_link_is_cut_and_made_again(burst, period, seed):
    """Between two living managers nothing is lost, doubled or reordered, although what was on its way is gone."""
    total = max(burst, 600)

    def cut(cluster):
        cluster.network.cut("manager-1", "manager-2")

    def heal(cluster):
        cluster.network.heal("manager-1", "manager-2")

    faults = [(0.0007 + seed * 0.001, cut), (0.5, heal), (2.6, cut), (2.7, heal)]
    result = run(topology(total, burst, period), containers=2, seed=seed, faults=faults, cost={"middle": 1e-4})
    assert result.state == "SUCCEEDED"
    assert arrived(result, "middle") == list(range(total))
    assert arrived(result, "sink") == list(range(total))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_lossy_link(seed):
    """A third of the messages between all processes of two containers is lost, for three seconds."""

    def lossy(cluster):
        for one in cluster.names:
            for other in cluster.names:
                if one < other:
                    cluster.network.drop(one, other, 0.3)

    def heal(cluster):
        for one in cluster.names:
            for other in cluster.names:
                cluster.network.heal(one, other)

    faults = [(0.002, lossy), (3, heal)]
    result = run(topology(400, 3, 2), containers=2, seed=seed, faults=faults, cost={"spout": 0.001})
    assert result.state == "SUCCEEDED"
    assert arrived(result, "sink") == list(range(400))


@settings(max_examples=share(20))
@given(
    burst=st.integers(1, 200),
    period=st.integers(1, 7),
    rows=st.sampled_from([1, 2, 16, 1000]),
    containers=st.integers(1, 2),
    seed=st.integers(0, 1000),
)
def test_any_rhythm(burst, period, rows, containers, seed):
    """Bursts, periods and batch sizes of any kind."""
    result = run(topology(200, burst, period, rows), containers=containers, seed=seed)
    assert (result.state, arrived(result, "sink")) == ("SUCCEEDED", list(range(200)))
