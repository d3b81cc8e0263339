"""What a component knows, and may do, when it is closed as its process ends."""

from __future__ import annotations

import pytest

from ardea import Bolt, Topology
from ardea.heron_instance.environment import Stopping
from ardea.protocol.wire_pb2 import EXIT, ORDER, Order
from ardea.testing import CollectBolt, RowsSpout
from tests.unit.heron_instance.bench import Bench
from tests.unit.protocol.hostile import Instance


@pytest.mark.parametrize("over", [True, False])
def test_it_knows_whether_the_topology_is_over_or_the_process_is_only_told_to_stop(over):
    instance = Instance("passed")
    if over:
        instance._says(ORDER, Order(kind=EXIT), 2)
    assert instance.over is over
    instance.executor.close()
    assert instance.executor.env.context.topology_over is over


class Keeps(Bolt):
    """Emits in ``close`` what it has kept, and more than there is room for."""

    outputs = ("n",)
    closed = False

    def process(self, tup):
        """It does so at once."""

    def close(self):
        for n in range(10_000):
            self.emit((n,))
        self.closed = True


class Keeping(Topology):
    rows = RowsSpout.of(["n"], []).spec()
    keeps = Keeps.spec(inputs=[rows])
    collect = CollectBolt.spec(inputs=[keeps])


def test_close_is_not_cut_short_where_there_is_no_room(monkeypatch):
    """None comes any more."""
    bench = Bench(Keeping, "keeps", "rows")

    def ends(_below, _timeout):
        raise Stopping

    monkeypatch.setattr(bench.output, "wait_room", ends)
    bench.output.held_bytes = 1 << 40
    bench.executor.close()
    assert bench.component.closed
