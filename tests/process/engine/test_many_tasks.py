"""A hundred and twenty processes in one container."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = [pytest.mark.cluster, pytest.mark.thorough, pytest.mark.timeout(600)]


def test_they_all_start_each_once_and_end(tmp_path):
    with Running("many.py:Many", tmp_path) as topology:
        topology.until(lambda: (s := topology.run.status) and s.complete, "every task has reported", 180)
        lives = topology.processes()
        topology.raise_flag("enough")
        assert [len(container.instances) for container in topology.packing.containers] == [topology.module.TASKS + 1]
        topology.finish(120)
        assert topology.left("numbers") == [topology.module.ROWS]
        assert {process["life"] for process in lives.values()} == {1}
