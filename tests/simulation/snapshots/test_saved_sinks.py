"""Savepoints of topologies whose sinks write outside: which rows are there once when another topology has begun from one."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Grouping, Topology
from ardea.testing.inside import Inside
from tests.simulation.snapshots.test_savepoints import begun, copying, request, saved
from tests.simulation.snapshots.test_sinks import CONFIG, ended, run, table
from tests.simulation.snapshots.written import ROWS, Numbered, Writes, covered

__all__ = ["begun", "table"]


def moved(tasks):
    """The same under another name, whose sink has so many tasks."""

    class Moved(Topology):
        rows = Numbered.spec(par=2)
        sink = Writes.spec(par=tasks, inputs={rows: Grouping.fields("word")})

    return Moved


@pytest.mark.parametrize(("down", "tasks"), [(False, 2), (True, 1), (True, 3)])
def test_a_kill_with_a_savepoint_and_a_topology_from_it_write_each_row_once(begun, table, down, tasks):
    with run() as cluster:
        copying(cluster)
        cluster.advance(1.2)
        table.down = down
        assert saved(cluster, request(ends=True)).step == "done"
        cluster.run_until(lambda: cluster.over, 30)
        files = Inside(cluster).store.savepoints["/one"]
        assert any(name.endswith(".rows") for name in files) or not down
    before = len(table.rows)
    assert before < 2 * ROWS
    table.down = False
    with begun(moved(tasks), files, config=CONFIG, containers=2, cost={"rows": 0.02}) as other:
        ended(other, ordered=False)
    assert len(table.rows) > before


def test_what_was_written_after_the_savepoint_comes_again_and_nothing_before_it(begun, table):
    """Rows that were not outside when it was taken are, by now, by the former topology."""
    with run() as cluster:
        copying(cluster)
        cluster.advance(1.2)
        table.down = True
        assert saved(cluster, request()).step == "done"
        files = Inside(cluster).store.savepoints["/one"]
        positions = covered(cluster)
        table.down = False
        cluster.run_until(lambda: min(covered(cluster)) > max(positions) and len(table.rows) > sum(positions) + 5, 60)
    with begun(moved(2), files, config=CONFIG, containers=2, cost={"rows": 0.02}) as other:
        other.run_until(lambda: other.over, 300)
        assert (other.state, other.reason) == ("SUCCEEDED", "")
    counts = Counter(table.rows)
    assert set(counts) == {(spout, place) for spout in range(2) for place in range(ROWS)}
    savepoint = [min(place for each, place in counts if each == spout and counts[each, place] > 1) for spout in range(2)]
    for (spout, place), times in counts.items():
        assert times <= 2
        assert times == 1 or place >= savepoint[spout]
    assert sum(savepoint) > 0, "what the savepoint has is there once"
