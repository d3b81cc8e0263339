"""Bolts for columns on real processes, killed in the middle of their work."""

from __future__ import annotations

import pytest

from tests.process.engine.running import Running
from tests.sizes import size

pytestmark = pytest.mark.cluster


@pytest.mark.soak
def test_every_row_arrives_whoever_is_killed(tmp_path):
    """At least once, in a sink for columns and in one for rows, and equal keys in the same places of both."""
    with Running("columns.py", tmp_path) as topology:
        topology.running()
        topology.grows("executed", "columns", 5000)
        for victim in ("even-0", "container-2/stream-manager", "even-1") * size(1, 20):
            life = topology.kill(victim)
            topology.returned(victim, life)
            topology.grows("executed", "columns", 5000)
            topology.grows("executed", "rows", 5000)
        topology.raise_flag("enough")
        outcome = topology.finish()
    [spout] = topology.left("batches")
    assert spout["acked"] == spout["end"]
    assert spout["calls"] < spout["end"] / 20, "acks come many at once"
    assert outcome.components["batches"].lost > 0
    assert outcome.components["batches"].given_up == outcome.components["batches"].timed_out == 0
    sinks = {kind: topology.left(kind) for kind in ("columns", "rows")}
    for tasks in sinks.values():
        assert sorted(n for task in tasks for n in task["numbers"]) == list(range(0, spout["end"], 2))
        assert not set(tasks[0]["keys"]) & set(tasks[1]["keys"])
    assert [task["keys"] for task in sinks["columns"]] == [task["keys"] for task in sinks["rows"]]
