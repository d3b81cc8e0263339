"""Savepoints of topologies whose sinks write outside: which rows are there once if another topology begins from one."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Bolt, Grouping, KeyedState, Timers, Topology
from ardea.snapshots.savepoint import read
from ardea.testing import Cluster
from ardea.testing.inside import Inside
from ardea.testing.memory_store import Held
from tests.simulation.snapshots.counted import EffectivelyOnce, folded
from tests.simulation.snapshots.test_savepoints import asked, begun, copying, request, saved
from tests.simulation.snapshots.test_sinks import CONFIG, ended, run, table
from tests.simulation.snapshots.written import ROWS, Numbered, Writes, covered

__all__ = ["begun", "table"]


def moved(tasks):
    """The same under another name, whose sink has so many tasks."""

    class Moved(Topology):
        rows = Numbered.spec(par=2)
        sink = Writes.spec(par=tasks, inputs={rows: Grouping.fields("word")})

    return Moved


def positions_in(files):
    """Of the two spouts."""
    parts = sorted(read(Held(files)).manifest.parts.items())
    tables = [folded((files[f.name], f.name) for f in part.files) for _, part in parts if part.component == "rows"]
    return [each["position"] for each in tables]


@pytest.mark.parametrize(("down", "tasks"), [(False, 2), (True, 1), (True, 3)])
def test_a_kill_with_a_savepoint_and_a_topology_from_it_write_each_row_once(begun, table, down, tasks):
    with run() as cluster:
        copying(cluster)
        cluster.advance(1.2)
        table.down = down
        asked(cluster, request(ends=True))
        cluster.run_until(lambda: cluster.over, 60)
        assert cluster.reason == "its savepoint is /one"
        files = Inside(cluster).store.savepoints["/one"]
        assert any(name.endswith(".rows") for name in files) or not down
    before = len(table.rows)
    assert before < 2 * ROWS
    table.down = False
    with begun(moved(tasks), files, config=CONFIG, containers=2, cost={"rows": 0.02}) as other:
        ended(other, ordered=False)
    assert len(table.rows) > before


class Later(Bolt):
    """Each row goes on six seconds after it came."""

    outputs = Numbered.outputs
    rows = KeyedState(default=list)
    timers = Timers()

    def initialize(self, config, context):
        self._now = context.now

    def process(self, tup):
        self.rows[tup["word"]].append(tup.values)
        self.timers.set(tup["word"], self._now() + 6.0)

    def on_timer(self, name, key, at):
        self.emit_many(self.rows.pop(key))


class Delayed(Topology):
    rows = Numbered.spec(par=2)
    later = Later.spec(inputs={rows: Grouping.fields("word")})
    sink = Writes.spec(inputs=[later])


@pytest.mark.parametrize("refused", [False, True])
def test_what_timers_do_while_it_is_copied_does_not_count(table, refused):
    """They fire again in a topology that begins from it; where it is refused, snapshots go on."""
    with Cluster(EffectivelyOnce(Delayed), config=CONFIG, cost={"rows": 0.02}) as cluster:
        copying(cluster, 10.0, 10.0)
        cluster.advance(1.2)
        ends = request(patience=9.0 if refused else 30.0, ends=True)
        cluster.run_until(lambda: asked(cluster, ends).step == "copying")
        cluster.advance(7.0)
        number = Inside(cluster).master.coordination.snapshots.record.committed
        assert number == Inside(cluster).master.coordination.demanded.number
        assert table.rows == []
        cluster.run_until(lambda: table.rows or cluster.over, 60)
        assert (table.rows == []) == (cluster.state == "KILLED") == (not refused)


def test_what_was_written_after_the_savepoint_comes_again_and_nothing_before_it(begun, table):
    """Rows that were not outside when it was taken are, by now, by the former topology."""
    with run() as cluster:
        copying(cluster)
        cluster.advance(1.2)
        table.down = True
        assert saved(cluster, request()).step == "done"
        files = Inside(cluster).store.savepoints["/one"]
        positions = positions_in(files)
        table.down = False
        cluster.run_until(lambda: min(covered(cluster)) > max(positions) and len(table.rows) > sum(positions) + 5, 60)
    with begun(moved(2), files, config=CONFIG, containers=2, cost={"rows": 0.02}) as other:
        other.run_until(lambda: other.over, 300)
        assert (other.state, other.reason) == ("SUCCEEDED", "")
    counts = Counter(table.rows)
    assert set(counts) == {(spout, place) for spout in range(2) for place in range(ROWS)}
    for (spout, place), times in counts.items():
        assert times == 1 if place < positions[spout] else times <= 2, "what the savepoint has is there once"
    assert max(counts.values()) == 2
    assert min(positions) > 0
