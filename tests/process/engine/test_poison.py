"""A row that kills its process is put aside, and its neighbours arrive."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_rows_that_kill_or_raise_become_dead_letters(tmp_path):
    """Each is sent once and once again; what the deaths broke besides is sent again as often as that takes."""
    with Running("poison.py:Poison", tmp_path) as topology:
        topology.running()
        outcome = topology.finish()
        lives = topology.processes()["fragile-0"]["life"]
    total, poison = topology.module.TOTAL, {topology.module.KILLS, topology.module.RAISES}
    assert outcome.state == "SUCCEEDED"
    assert lives == 3
    [letters], [passed], [acked] = (topology.left(name) for name in ("letters", "passed", "numbers"))
    assert sorted(letters) == [[number, "default", [number]] for number in sorted(poison)]
    assert {number for (number,) in passed} == set(range(total)) - poison
    assert acked == list(range(total))
    assert outcome.components["numbers"].lost > 0
    assert not list((topology.folder).glob("container-*/task-*.current"))
