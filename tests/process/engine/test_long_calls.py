"""Rows do not wait for the end of the call that emits them: on real threads."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running

pytestmark = pytest.mark.cluster


def test_rows_arrive_while_the_call_that_emitted_them_goes_on(tmp_path):
    """Each call returns only when its rows have arrived, so rows that waited for its end would never arrive."""
    with Running("long_calls.py", tmp_path) as topology:
        topology.finish()
        [count] = topology.left("arrives")
    assert count == {"Sleeps": 2, "FastFirst": 2002, "Consumes": 6, "Computes": 2, "Passes": 2}
    assert sorted(file.name for file in topology.out.glob("late-*")) == []
