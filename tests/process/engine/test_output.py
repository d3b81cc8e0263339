"""An executor whose output queue is full goes on as soon as there is room, not when its longest wait is over."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = [pytest.mark.cluster, pytest.mark.alone]


def test_a_drained_output_queue_wakes_the_executor(tmp_path):
    """Five hundred megabytes fill it again and again: a second's wait for each would miss the deadline."""
    with Running("wide.py:Output", tmp_path) as topology:
        outcome = topology.finish(25)
    assert outcome.state == "SUCCEEDED"
    assert topology.left("counts") == [topology.module.TOTAL]
