"""What a bolt returns, which nobody reads."""

from __future__ import annotations

import pytest

from ardea import Bolt, Sink, Topology
from ardea.testing import Cluster, RowsSpout, run

ROWS = [[n] for n in range(20)]


def topology_of(method, function, base=Bolt, **config):
    class Returns(base):
        pass

    setattr(Returns, method, function)

    class Made(Topology):
        rows = RowsSpout.of(["n"], ROWS).spec()
        returns = Returns.spec(inputs=[rows])

    Made.config = config
    return Made


def yields(*_):
    yield 1


async def sleeps(*_): ...


@pytest.mark.parametrize("method", ["process", "process_batch", "process_columns"])
@pytest.mark.parametrize(("made", "kind"), [(yields, "generator"), (sleeps, "coroutine")])
def test_what_nobody_runs_ends_the_topology(method, made, kind):
    result = run(topology_of(method, lambda self, given: made(given)))
    assert result.state == "FAILED"
    assert f"Returns.{method} returned {kind}, which nobody runs" in result.reason
    assert result.acked["rows"] == []


def test_what_nobody_runs_fails_each_tuple_where_that_is_wanted():
    made = topology_of("process", lambda self, tup: yields(), **{"topology.max.tuple.replays": 1})
    result = run(made)
    assert (result.acked["rows"], {*result.failed["rows"]}) == ([], {*range(20)})


def test_a_batch_that_is_not_written_is_not_acked():
    result = run(topology_of("write_batch", lambda self, rows: yields(), Sink))
    assert result.state == "FAILED"
    assert "Returns.write_batch returned generator, which nobody runs" in result.reason


@pytest.mark.parametrize("method", ["process_batch", "process_columns"])
def test_rows_that_are_returned_are_warned_of(method):
    with Cluster(topology_of(method, lambda self, rows: [])) as cluster:
        told = []
        while not cluster.over:
            cluster.advance(0.0005)
            told += cluster.errors
    assert cluster.state == "SUCCEEDED"
    assert f"returns-0: {method}() returned list, which nobody reads: emit rows with self.emit(...)" in told
