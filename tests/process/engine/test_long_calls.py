"""Rows do not wait for the end of the call that emits them: on real threads."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_rows_arrive_while_the_call_that_emitted_them_goes_on(tmp_path):
    """Each call goes on for 2.4 s behind its row; on a busy machine two thirds of that are allowed."""
    with Running("long_calls.py", tmp_path) as topology:
        topology.finish()
        ((ways, count),) = topology.left("arrives")
        most = topology.module.WAIT * 2 / 3
    assert count == {"Sleeps": 2, "FastFirst": 2002, "Consumes": 6, "Computes": 2, "Passes": 2}
    assert {who: way for who, way in ways.items() if way > most} == {}
