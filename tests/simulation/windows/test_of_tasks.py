"""Windows of tasks whose rows have no key: together they have each row once, also after deaths and updates."""

from __future__ import annotations

from collections import Counter

import pytest

from ardea import Bolt, Grouping, KeyedState, Spout, TaskState, Topology
from ardea.testing import Cluster, run
from ardea.testing.inside import Inside
from ardea.windows import Count, CountSliding, CountTumbling, Sliding, WindowBolt
from tests.simulation.snapshots.counted import EffectivelyOnce, tables_of
from tests.simulation.watermarks.timed import Stamped
from tests.simulation.windows.test_windows import COST, MODES, Columns, of_panes


class OfTasks(WindowBolt):
    """Of each task: no input has keys."""

    outputs = ("task", "start", "count")
    windows = Sliding(6, 2, on="at", fold=Count(), offset=1)

    def initialize(self, config, context):
        self._me = context.this_task_index

    def on_window(self, key, window, value):
        assert key is None
        self.emit((self._me, window.start, value))


class Sums(Bolt):
    """Rows of each window of all tasks together, and of whom they were: 1 for task 0, 10 for task 1, and so on."""

    rows = KeyedState(default=0)
    tasks = KeyedState(default=0)

    def process(self, tup):
        self.rows[tup["start"]] += tup["count"]
        self.tasks[tup["start"]] += 10 ** tup["task"]


class Apart(Topology):
    rows = Stamped.spec(par=2)
    windows = OfTasks.spec(par=3, inputs={rows: Grouping.SHUFFLE})
    results = Sums.spec(par=2, inputs={windows: Grouping.fields("start")})


def of_all_keys():
    expected = Counter()
    for (_, start), count in of_panes(6, 2, 1).items():
        expected[start] += count
    return expected


def apart(faults=(), parallelism=None):
    """Runs it, checks that each row was in its windows once, and returns which tasks have seen each window."""
    config = {"topology.stateful.checkpoint.interval.secs": 0.5}
    with Cluster(EffectivelyOnce(Apart), containers=2, seed=4, config=config, cost=COST, faults=faults) as cluster:
        if parallelism is not None:
            cluster.advance(3.0)
            done = cluster.updated(cluster.update_request(parallelism={"windows": parallelism}))
            assert (done.step, done.reason) == ("done", "")
        cluster.run_until(lambda: cluster.over, timeout=400)
        assert (cluster.state, cluster.reason) == ("SUCCEEDED", "")
        store, rows, tasks, left = Inside(cluster).store, {}, {}, {}
        for tables in tables_of(store, store.records[-1].committed):
            rows.update(tables.get("rows", {}))
            tasks.update(tables.get("tasks", {}))
            left.update(tables.get("_windows", {}))
    assert rows == of_all_keys()
    assert left == {}
    return tasks


def test_each_task_has_windows_of_its_own_where_rows_have_no_key():
    seen = {*apart().values()}
    assert seen <= {111, 110, 101, 11, 100, 10, 1}, "each task once"
    assert 111 in seen


def test_they_come_back_with_their_task():
    apart([(2.0, lambda cluster: cluster.kill("windows-1")), (3.5, lambda cluster: cluster.kill("manager-2"))])


@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_those_of_a_task_that_goes_are_seen_by_one_that_stays(parallelism):
    apart(parallelism=parallelism)


class Few(Spout):
    """It never ends."""

    outputs = ("n",)
    position = TaskState(default=0)

    def next_tuple(self):
        if self.position < 25:
            self.emit((self.position,))
            self.position += 1


class ByNumber(WindowBolt):
    outputs = ("count",)
    windows = CountTumbling(10, fold=Count())

    def on_window(self, key, window, value):
        assert key is None
        self.emit((value,))


class SlidingByNumber(ByNumber):
    windows = CountSliding(10, every=8, fold=Count())


class Keeps(Bolt):
    found = TaskState(default=list)

    def process(self, tup):
        self.found.append(tup["count"])


@pytest.mark.parametrize(("bolt", "seen"), [(ByNumber, [10, 10, 5]), (SlidingByNumber, [8, 10, 10, 10])])
def test_those_by_number_that_nobody_adds_to_any_more_are_seen_at_once(bolt, seen):
    """Tasks of another number have other keys: what is open under a former one never becomes full."""

    class Made(Topology):
        rows = Few.spec()
        windows = bolt.spec(inputs={rows: Grouping.SHUFFLE})
        results = Keeps.spec(inputs=[windows])

    with Cluster(EffectivelyOnce(Made), config={"topology.stateful.checkpoint.interval.secs": 0.5}) as cluster:
        cluster.advance(3.0)
        assert cluster.updated(cluster.update_request(parallelism={"windows": 2})).step == "done"
        cluster.advance(3.0)
        assert cluster.task("results-0", Keeps).found == seen


@pytest.mark.parametrize("mode", MODES)
def test_so_it_is_in_other_modes_and_with_columns(mode):
    class Made(Topology):
        rows = type("Rows", (Columns,), {"given": [("a", 1, float(at)) for at in range(60)]}).spec()
        windows = OfTasks.spec(par=3, inputs={rows: Grouping.SHUFFLE})

    result = run(Made, cost={"rows": 0.1}, config={"topology.reliability.mode": mode})
    assert (result.state, result.record.exceptions) == ("SUCCEEDED", [])
    found = Counter()
    for _, start, count in result.tuples("windows"):
        found[start] += count
    assert found == {start: sum(start <= at < start + 6 for at in range(60)) for start in range(-5, 61, 2)}
    assert {task for task, *_ in result.tuples("windows")} == {0, 1, 2}
