"""A row at which a process dies is found out and put aside, and all others are counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.engine.running import Running

TOPOLOGY = Path(__file__).parent / "topologies" / "killing.py"

NAMES = "numbers-0", "fragile-0", "letters-0"

pytestmark = pytest.mark.cluster


def test_a_row_that_ends_its_process_becomes_a_dead_letter(tmp_path):
    with Running(f"{TOPOLOGY}:Killing", tmp_path) as topology:
        topology.running()
        topology.finish()
        lives = {name: process["life"] for name, process in topology.processes().items() if name in NAMES}
        assert 'killing.py", line ' in topology.log("fragile-0"), "its author's own line"
    module = topology.module
    assert topology.left("fragile") == [module.TOTAL - 1]
    assert topology.left("letters") == [[[None, "numbers:default", [module.KILLS]]]]
    assert lives == {"numbers-0": 1, "letters-0": 1, "fragile-0": 3}, "of the first death no row is known"
    assert not list(topology.folder.glob("container-*/task-*.current"))
