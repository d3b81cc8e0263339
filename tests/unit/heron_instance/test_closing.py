"""What a component knows when it is closed as its process ends."""

from __future__ import annotations

import pytest

from ardea.protocol.wire_pb2 import EXIT, ORDER, Order
from tests.unit.protocol.hostile import Instance


@pytest.mark.parametrize("over", [True, False])
def test_it_knows_whether_the_topology_is_over_or_the_process_is_only_told_to_stop(over):
    instance = Instance("passed")
    if over:
        instance._says(ORDER, Order(kind=EXIT), 2)
    assert instance.over is over
    instance.executor.close()
    assert instance.executor.env.context.topology_over is over
